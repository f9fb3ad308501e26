"""The published frames: pandas opens nothing but bytes that have the pinned hash."""

import hashlib
import os
import pickle

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.stereoset import stereoset_items

# SHA-256 of repr(read(language, test)), from the last version that read the frames without pandas
READ = {
    ("en", "inter"): "342e39e164ebad76",
    ("en", "intra"): "1bb46a2e5607ace0",
    ("de", "inter"): "a710ae27e2ba738e",
    ("de", "intra"): "b05f9b5ed0108582",
    ("es", "inter"): "8fe7750ceebf5e12",
    ("es", "intra"): "158a6593cf45631e",
    ("fr", "inter"): "fefc050fd227d4b6",
    ("fr", "intra"): "503014dd9a22af2d",
    ("tr", "inter"): "59741df4bb551a5f",
    ("tr", "intra"): "95732f17a4de2695",
}


class Hostile:
    """Leaves a file where it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch ran",)


def test_the_published_items_stay_as_they_were(mirror):
    for key, expected in READ.items():
        items = stereoset_items.read(*key)
        assert hashlib.sha256(repr(items).encode()).hexdigest().startswith(expected), (
            key
        )


def test_another_file_is_never_opened(tiny_mirror, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "stereoset_en_inter"
    source = sources.manifest().files[name]
    path = sources.mirrored_path(source, tiny_mirror)
    path.write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(BiasError, match="not the pinned file"):
        stereoset_items.read("en", "inter")
    monkeypatch.setattr(
        sources, "locate", lambda name: path
    )  # it changed after it was verified
    with pytest.raises(BiasError, match="not opened"):
        stereoset_items.read("en", "inter")
    assert not (tmp_path / "ran").exists()
