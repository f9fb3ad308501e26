"""The regard classifier that Kraft et al. (2022) released: the weights of a file of ``torch.save``, and nothing else.

The file is a pickled module. Here no class in it is imported and nothing of it is called: what isn't a tensor becomes
an :class:`_Inert` object, which only keeps its state.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_plain
from lm_eval_bias.custom_metrics.intervals import Array
from lm_eval_bias.tasks.regard.classifier_identity import loading
from lm_eval_bias.tasks.regard.heads import Head, network

WHERE = "models/GER/sbert_regard_classifier_model.pth of krangelie/German_NLG_bias"
_LARGEST = 1 << 26  # bytes; theirs has 230,000 weights
_STORAGES = {"FloatStorage": np.float32, "DoubleStorage": np.float64}
# the authors' names of the layers that heads.network has by number
_LAYERS = {"linear": 0, "dense": 1, "classifier": 4}


class _Inert:
    """An object of whatever class the file names: it keeps its state and does nothing."""

    def __init__(self, *arguments: object, **named: object) -> None:
        self.state: Any = {}

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        """Take an entry of a dictionary's subclass, and forget it."""

    def append(self, entry: object) -> None:
        """Take an entry of a list's subclass, and forget it."""


def _tensor(
    storage: Array,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *_: object,
) -> Array:
    """Make an array of a storage; of contiguous tensors alone."""
    count = int(np.prod(size, dtype=int))
    values = np.array(storage[offset : offset + count])
    whole = values.reshape(size)
    if whole.strides != tuple(step * whole.itemsize for step in stride):
        raise ValueError("a tensor that isn't contiguous")
    return whole


def _parameter(data: Array, *_: object) -> Array:
    return data


class _Weights(pickle.Unpickler):
    """Reads tensors, and makes everything else inert."""

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")))
        self._archive = archive
        self._root = root

    def find_class(self, module: str, name: str) -> object:
        """Return what stands for a name in the file: never what has this name."""
        if module == "torch" and name in _STORAGES:
            return name
        known = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): _parameter,
        }
        return known.get((module, name), _Inert)

    def persistent_load(self, pid: tuple[str, ...]) -> Array:
        """Read a tensor's numbers."""
        _, storage, key, *_ = pid
        raw = self._archive.read(f"{self._root}data/{key}")
        return np.frombuffer(raw, _STORAGES[storage])


def _parameters(found: object) -> dict[str, Array]:
    """List the tensors of a pickled module, or of a dictionary of weights, by name."""
    if isinstance(found, Mapping):
        weights = found.get("state_dict", found)
        return {
            name: own for name, own in weights.items() if isinstance(own, np.ndarray)
        }
    state = found.state if isinstance(found, _Inert) else {}
    tensors = _parameters(state.get("_parameters") or {})
    for name, module in (state.get("_modules") or {}).items():
        for inner, tensor in _parameters(module).items():
            tensors[f"{name}.{inner}"] = tensor
    return tensors


def read(path: Path) -> Head:
    """Read the released classifier's weights as a head of one member; ``info`` has the file's ``sha256`` and ``data``.

    Raises:
        BiasError: No such file, or not one of that form.
    """
    import torch

    what = f"classifier paper:{path}"
    if not path.is_file():
        raise BiasError(f"{what}: no such file: download {WHERE}, and name it")
    with loading(what):
        check_plain(path, _LARGEST)
        raw = path.read_bytes()
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                (pickled,) = [n for n in archive.namelist() if n.endswith("data.pkl")]
                root = pickled.removesuffix("data.pkl")
                tensors = _parameters(_Weights(archive, root).load())
        except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError) as error:
            raise ValueError(f"not a file of torch.save ({error})") from error
        weights = {}
        for name, tensor in tensors.items():
            layer, _, kind = name.rpartition(".")
            if layer in _LAYERS:
                weights[f"{_LAYERS[layer]}.{kind}"] = torch.from_numpy(tensor).float()
        member = network(weights["0.weight"].shape[1])
        member.load_state_dict(weights)
    info = {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "data": "weights of Kraft et al. (2022), as the file's name claims",
    }
    return Head([member], info)
