"""What free answers have in common: thoughts, markup, and that no text makes a reader raise."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_bias.core.answers import ENDLESS, UNANSWERED
from lm_eval_bias.scoring import free_answers
from lm_eval_bias.scoring.free_answers import (
    WithoutThoughtsFilter,
    marks_thoughts,
    opening_of_thoughts,
    without_thoughts,
)
from tests.support.labelled_answers import GOLDEN, read, reader

MARKS = yaml.safe_load((GOLDEN / "thought_marks.yaml").read_text(encoding="utf-8"))


def test_thoughts_are_cut(caplog):
    free_answers._warn_once.cache_clear()
    texts = yaml.safe_load((GOLDEN / "thoughts.yaml").read_text(encoding="utf-8"))
    assert {text: without_thoughts(text) for text in texts} == texts
    # marks that no list has are named, once
    assert caplog.text.count("in marks named ponder: taken for a model's thoughts") == 1
    found = WithoutThoughtsFilter().apply([["<think>a</think> b", None]], [{}])
    assert found == [["b", ""]]


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_marks_of_todays_models(opens, closes, caplog):
    assert without_thoughts(f"{opens}The answer is A.{closes}B") == "B"
    assert without_thoughts(f"\n{opens}\nThe answer is A.") == ENDLESS
    assert marks_thoughts(opens + "A")
    if "channel" not in opens:  # which the model writes
        assert opening_of_thoughts(f"Who?<|assistant|>{opens}\n") == opens
    assert opening_of_thoughts(opens + closes) == ""
    assert not caplog.records


SCRAPS = r"A b) (C) ** * \boxed{ <|end|> ... : = I İ ı ß ﬀ ﷺ &#x110000; $A #B ^C ~ ' 가 입니다 He they".split()
ANY_TEXT = st.lists(
    st.sampled_from([*SCRAPS, *sum(MARKS, []), "\n", "\u0301", "\ud800"])
    | st.text(st.characters(exclude_categories=()), max_size=9),
    max_size=30,
).map(" ".join)


def check(text, language="en", options=("The woman", "The man", "Not known")):
    for cut in (False, True):
        said = reader(language, options).read(without_thoughts(text), cut)
        assert said in {*"ABCDEFGHIJKL", *UNANSWERED}
    for kind in ("explicit", "implicit", "stories"):
        read({"kind": kind, "text": text, "right": "none"})
    opening_of_thoughts(text)


@given(
    ANY_TEXT,
    st.sampled_from("en de es ca fr ko nl tr".split()),
    st.lists(ANY_TEXT, min_size=2, max_size=12),
)
def test_nothing_that_a_text_says_raises(text, language, options):
    check(text, language)
    check(text, options=options)
