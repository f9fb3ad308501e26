"""Likeliest texts that end where nothing of what follows is read: the same answers, in fewer steps."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance

from lm_eval_bias.core import registry
from lm_eval_bias.harness import registration
from lm_eval_bias.scoring import early_stopping
from lm_eval_bias.scoring.choice_reading import Option, reader
from tests.support import tiny

PROMPTS = ["The old gardener", "Der", "A neighbour waved. He", "L'ingénieure", "Les enfants"]
LENGTH = 30


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from lm_eval.models.huggingface import HFLM

    registration.register()
    folder = tiny.gpt2(tmp_path_factory.mktemp("model"))
    return HFLM(pretrained=folder, device="cpu", batch_size=3, dtype="float32")


@pytest.fixture
def steps(model, monkeypatch):
    """One entry per forward of the network."""
    forward, sizes = model.model.forward, []

    def counted(*args, **kwargs):
        sizes.append(1)
        return forward(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", counted)
    return sizes


def texts(model, until, early, doc=None):
    options = {"until": until, "do_sample": False, "max_gen_toks": LENGTH}
    asked = [Instance("generated_text", doc or {}, (p, dict(options)), 0, ("t", n, 1)) for n, p in enumerate(PROMPTS)]
    with pytest.MonkeyPatch.context() as patch:
        if not early:
            patch.setattr(early_stopping, "early", lambda *_: contextlib.nullcontext())
        return model.generated_text(asked)


def test_each_text_ends_at_its_own_stop_string(model, steps):
    long = texts(model, [], early=False)
    stops = sorted({text[3] for text in long})
    before = len(steps)
    expected = texts(model, stops, early=False)
    plain, before = len(steps) - before, len(steps)
    assert texts(model, stops, early=True) == expected
    assert max(map(len, expected)) <= 3
    # the harness waits until all texts of a batch have met the same one
    assert len(steps) - before < plain / 2


def test_a_text_ends_once_its_benchmark_has_what_it_reads(model, steps, monkeypatch):
    benchmark = registry.get("gg_bbq")
    monkeypatch.setattr(type(benchmark), "is_settled", lambda self, doc, text: len(text) > doc["n"], raising=False)
    doc = {"benchmark": "gg_bbq", "n": 6}
    long = texts(model, [], early=False, doc=doc)
    plain = len(steps)
    short = texts(model, [], early=True, doc=doc)
    assert all(whole.startswith(text) and 6 < len(text) < len(whole) for text, whole in zip(short, long, strict=True))
    assert len(steps) - plain < plain / 2
    monkeypatch.setattr(model, "think_end_token", "</think>")
    assert texts(model, [], early=True, doc=doc) == long
    assert "generate" not in vars(model.model)


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("Die Frau.\nEs\n", False),  # the beginning of a stop string, behind which the text would be cut
        ("Die Frau.\nEs\nText", False),
        ("Die Frau.\nText:", True),
        ("Die Frau.\nEs\n\n", True),
        ("Die Frau.\nEs\nTee", True),
        ("Wohl die Frau.\n", False),
    ],
)
def test_what_may_become_a_stop_string_is_no_end_of_a_line(text, ended):
    choices = ["Der Mann", "Die Frau", "keine Antwort"]
    doc = {"benchmark": "gg_bbq", "choices": choices, "order": [0, 1, 2], "letters": []}
    request = Instance("generated_text", doc, ("prompt", {"until": ["\nText:", "\nFrage:"]}), 0, ("t", 0, 1))
    assert early_stopping.ends(text, request) is ended


CHOICES = [
    ["Der Mann", "Die Frau", "keine Antwort"],
    ["Ann", "Anna", "keine Antwort"],
    ["Frau", "Frau, die", "keine Antwort"],
    ["Antwort Eins", "Eins", "keine Antwort"],
    ["Maria", "Maria", "keine Antwort"],
]
PIECES = [
    "Der Mann", "Die Frau", "die Frau", "Ann", "Anna", "a", "Frau", ", die", "Maria", "keine Antwort", "Antwort",
    "Antwort: ", "Eins", "A", "B)", "(C", ".", ",", ":", " ", "\n", "\r", "\r\n", "\n\n", "**", "„", "oder", "t",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(st.sampled_from(CHOICES), TEXT, TEXT)
@example(CHOICES[2], "Frau,\nt\n", " die.")
@example(CHOICES[3], "Antwort Eins.\n\nt\n", "\n")
@example(CHOICES[0], "A, B, ", "nna ist es\nDie Frau")
def test_nothing_that_follows_a_settled_answer_is_read(choices, text, more):
    own = reader(tuple(Option(letter, (choice,)) for letter, choice in zip("ABC", choices, strict=True)), "de")
    if own.is_settled(text):
        assert own.read(text + more) == own.read(text)
