"""The regard classifier that Kraft et al. (2022) released: the weights of a file of ``torch.save``, and nothing else.

The file is a pickled module. PyTorch reads its tensors alone (``weights_only``); every class that it names is replaced
by a dictionary, so that none is imported and nothing of it is called.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_plain
from lm_eval_bias.tasks.regard.classifier_identity import loading
from lm_eval_bias.tasks.regard.heads import ENCODERS, Head, network

if TYPE_CHECKING:
    from torch import Tensor

WHERE = "models/GER/sbert_regard_classifier_model.pth of krangelie/German_NLG_bias"
_LARGEST = 1 << 26  # bytes; theirs has 230,000 weights
# the authors' names of the layers that heads.network has by number
_NUMBERS = {"linear": 0, "dense": 1, "classifier": 4}
_LAYER = re.compile(
    rf"\.(?P<name>{'|'.join(_NUMBERS)})\.(_parameters\.)?(?P<kind>\w+)$"
)


class _Inert:
    """An inert stand-in for any pickled class: a dictionary with the pickled attributes."""

    def __new__(cls, *arguments: object) -> OrderedDict[Any, Any]:  # type: ignore[misc]
        """Make a dictionary, to which PyTorch adds entries and attributes without calling anything."""
        return OrderedDict()


def _tensors(found: Any, place: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors in nested dictionaries and attributes, each with its path."""
    if hasattr(found, "dtype"):
        yield place, found
    entries = {**getattr(found, "__dict__", {})}
    if isinstance(found, dict):
        entries |= found
    for name, inner in entries.items():
        yield from _tensors(inner, f"{place}.{name}")


def read(path: Path) -> Head:
    """Read the released classifier's weights as a head on the encoder that they were trained with.

    Raises:
        BiasError: No such file, or not one of that form.
    """
    import torch
    from torch import serialization

    what = f"classifier paper:{path}"
    if not path.is_file():
        raise BiasError(f"{what}: no such file: download {WHERE}, and name it")
    with loading(what):
        check_plain(path, _LARGEST)
        raw = path.read_bytes()
        file = io.BytesIO(raw)
        try:
            names = serialization.get_unsafe_globals_in_checkpoint(file)
            file.seek(0)
            with serialization.safe_globals([(_Inert, name) for name in names]):
                found = torch.load(file, map_location="cpu", weights_only=True)
        except (RuntimeError, ValueError, pickle.UnpicklingError, EOFError) as error:
            raise ValueError(f"not a file of torch.save ({error})") from error
        weights = {}
        for place, tensor in _tensors(found):
            if layer := _LAYER.search(place):
                number = _NUMBERS[layer["name"]]
                weights[f"{number}.{layer['kind']}"] = tensor.float()
        net = network(weights["0.weight"].shape[1])
        net.load_state_dict(weights)
    info = {
        "encoder": ENCODERS["de"],
        "sha256": hashlib.sha256(raw).hexdigest(),
        "data": "weights of Kraft et al. (2022), as the file's name claims",
    }
    return Head(net, info)
