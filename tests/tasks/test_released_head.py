"""The released regard classifier: a file of the same form, made here, is read without anything in it being called."""

import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.regard import classifier, heads, released_head
from tests.support import tiny

CALLED = []


class Settings(dict):
    """As training frameworks keep them."""


class Regard(nn.Module):
    """The authors' layers by their names, with what training frameworks leave in a pickled module."""

    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, 256)
        self.dense = nn.Linear(256, 128)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(128, 3)
        self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
        self.settings = Settings(lr=4e-5)

    def forward(self, x):
        return self.classifier(self.dropout(torch.tanh(self.dense(self.linear(x)))))

    def __setstate__(self, state):
        CALLED.append("the file's own class")
        super().__setstate__(state)


def saved(path, size=12):
    torch.manual_seed(5)
    module = Regard(size).eval()
    torch.save(module, path)
    return module


@pytest.mark.parametrize("whole", [True, False])
def test_its_weights_are_read_as_a_head(tmp_path, whole):
    path = tmp_path / "model.pth"
    module = saved(path)
    if not whole:
        torch.save({"state_dict": module.state_dict(), "epoch": 3}, path)
    vectors = np.random.default_rng(1).normal(size=(7, 12))
    with torch.inference_mode():
        expected = module.double()(torch.from_numpy(vectors)).softmax(dim=-1).numpy()
    CALLED.clear()
    head = released_head.read(path)
    assert head.probabilities(vectors) == pytest.approx(expected, abs=1e-6)
    assert len(head.info["sha256"]) == 64
    assert CALLED == []


class Hostile:
    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_nothing_in_it_is_called(tmp_path):
    path, trap = tmp_path / "model.pth", tmp_path / "trap"
    hostile = Hostile()
    hostile.place = trap
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": hostile}))
    with pytest.raises(BiasError, match="cannot be loaded"):
        released_head.read(path)
    assert not trap.exists()
    pickle.loads(pickle.dumps(hostile))  # noqa: S301 (our own: the trap works)
    assert trap.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive"])
def test_other_files_are_refused_in_one_line(tmp_path, content):
    path = tmp_path / "model.pth"
    path.write_bytes(content)
    with pytest.raises(BiasError, match="not a file of torch.save") as caught:
        released_head.read(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(BiasError, match="no such file: download"):
        released_head.read(tmp_path / "absent.pth")


def test_it_is_a_classifier_for_german(tmp_path, tiny_mirror, monkeypatch):
    encoder = str(tiny.sentence_encoder(tmp_path / "encoder"))
    monkeypatch.setitem(heads.ENCODERS, "de", encoder)
    path = tmp_path / "model.pth"
    saved(path, heads.encoder(encoder)[0]([""]).shape[1])
    found = classifier.load(f"paper:{path}", "de")
    assert found.identity.measured["generated"]["n"] == 4
    assert "weights of Kraft et al. (2022)" in found.identity.detail
    for name, language in ((f"paper:{path}", "en"), ("paper", "de")):
        with pytest.raises(BiasError):
            classifier.load(name, language)
