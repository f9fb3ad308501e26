"""Servers that can't be asked as the command says: one line, before anything is loaded or sent."""

import pytest

from tests.support.commands import command

URL = "base_url=http://127.0.0.1:1/v1/completions"
LIKELIHOODS, WRITTEN = "stereoset_en", "gg_bbq_group_terms_gen"


@pytest.mark.parametrize(
    ("task", "kind", "model_args", "says"),
    [
        (
            LIKELIHOODS,
            "local-completions",
            "model=x",
            "add --model_args base_url=http://HOST:PORT/v1/completions",
        ),
        (
            WRITTEN,
            "local-chat-completions",
            "model=x",
            "base_url=http://HOST:PORT/v1/chat/completions",
        ),
        (
            LIKELIHOODS,
            "local-completions",
            f"{URL},tokenizer_backend=None",
            "tokenizer_backend=: log-likelihoods",
        ),
        (
            LIKELIHOODS,
            "local-completions",
            f"{URL},tokenized_requests=False",
            "tokenized_requests=: log-",
        ),
        (
            LIKELIHOODS,
            "local-completions",
            f"{URL},model=no/such",
            "add tokenizer=NAME_OR_FOLDER",
        ),
    ],
)
def test_what_a_client_lacks_is_one_line(task, kind, model_args, says, tiny_mirror):
    chat = ["--apply_chat_template"] * (task == WRITTEN)
    found = command(
        "run",
        "--tasks",
        task,
        "--limit",
        "4",
        "--model",
        kind,
        "--model_args",
        model_args,
        *chat,
    )
    assert found.status == 2
    errors = [line for line in found.err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert says in errors[0]
