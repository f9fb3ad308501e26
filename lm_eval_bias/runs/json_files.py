"""Result files' JSON: of bounded size, and without what the parser would quietly settle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import check_no_zeros, read_text
from lm_eval_bias.unique_keys import unique_keys

LARGEST = 1 << 26  # bytes: 64 MiB; a run of every task with every breakdown has a tenth of it


def read(path: Path) -> Any:
    """A file's content.

    Raises:
        BiasError: It can't be read, is no JSON, larger than 64 MiB, or has a key twice.
    """
    try:
        check_no_zeros(path)
        return json.loads(read_text(path, largest=LARGEST), object_pairs_hook=unique_keys)
    except BiasError as error:
        raise BiasError(f"damaged: {error}") from error
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", None) or getattr(error, "reason", None) or "nested too deeply"
        raise BiasError(f"truncated or damaged: not JSON ({problem})") from error
    except OSError as error:
        raise BiasError(f"cannot be read: {error.strerror}") from error
