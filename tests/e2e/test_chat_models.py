"""Chat models that know all answers, and write them in every style: what scores make of them."""

import pytest

from lm_eval_bias.models.chance import ChanceLM
from tests.support.answering import built, records
from tests.support.chat_styles import WORDS, styles

TASKS = {
    "gg_bbq_group_terms_gen": "de",
    "es_bbq_gender_gen": "es",
    "ca_bbq_gender_gen": "ca",
    "kobbq_religion_gen": "ko",
    "mbbq_en_gender_identity_gen": "en",
    "mbbq_nl_gender_identity_gen": "nl",
    "mbbq_tr_gender_identity_gen": "tr",
}


class Writing(ChanceLM):
    """Writes what a function makes of a document."""

    def __init__(self, write):
        super().__init__()
        self._write = write

    def generate_until(self, requests):
        return [self._write(request.doc) for request in requests]


def asked(name):
    task = built(name, limit=40)
    return task, [instance.doc for instance in task.instances]


def values(task, write):
    """The scores of a task by name, of a model that writes so."""
    made = records(task, Writing(write))
    return {
        score.name: score.compute(made).value for score in task.benchmark.scores(made)
    }


def options_of(doc):
    return [doc["choices"][choice] for choice in doc["order"]]


def distinct(doc):
    """Whether a text can tell the options apart; two persons of GG-BBQ may have one name."""
    return len(set(doc["choices"])) == 3


def taking(write, choose):
    return lambda doc: write(options_of(doc), doc["order"].index(choose(doc)))


def in_own_words(language):
    """Write the letter, but "unknown" as a model does that doesn't repeat the option."""
    right = taking(styles(language)["letter"], lambda doc: doc["label"])

    def write(doc):
        is_unknown = doc["groups"][doc["label"]] == "unknown"
        return WORDS[language]["unknown"] if is_unknown else right(doc)

    return write


@pytest.mark.parametrize(("name", "language"), TASKS.items())
def test_a_model_that_is_right_in_every_item_has_full_marks_in_every_style(
    name, language, tiny_mirror
):
    task, docs = asked(name)
    task.instances[:] = [
        instance for instance in task.instances if distinct(instance.doc)
    ]
    assert {doc["context_type"] for doc in docs} == {"ambiguous", "disambiguated"}
    for style, write in styles(language).items():
        found = values(task, taking(write, lambda doc: doc["label"]))
        assert (found["acc_amb"], found["acc_disamb"], found["unanswered"]) == (
            1,
            1,
            0,
        ), style


@pytest.mark.parametrize(("name", "language"), TASKS.items())
def test_one_that_says_unknown_in_its_own_words_has_full_marks(
    name, language, tiny_mirror
):
    task, docs = asked(name)
    assert any(doc["groups"][doc["label"]] == "unknown" for doc in docs)
    found = values(task, in_own_words(language))
    assert (found["acc_amb"], found["acc_disamb"], found["unanswered"]) == (1, 1, 0)
