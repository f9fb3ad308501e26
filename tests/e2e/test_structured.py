"""Answers that a server is asked for in a form, and plain ones with an explanation behind: through a server."""

import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support import run_scores, servers
from tests.support.answering import built


def right_and_another(doc):
    """The right option and the next person, each with its letter."""
    shown = [
        (letter, choice) for letter, choice in zip("ABC", doc["order"], strict=True)
    ]
    other = next(
        choice
        for choice in doc["order"]
        if choice != doc["label"] and doc["groups"][choice] != "unknown"
    )
    by_choice = {choice: (letter, doc["choices"][choice]) for letter, choice in shown}
    return by_choice[doc["label"]], by_choice[other]


def served(tmp_path, tasks, write, *options, status=200):
    """Run tasks through a server that answers with what is written for each prompt; return scores and requests."""
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    texts = {}
    for name in tasks:
        task = built(name, limit=40)
        texts |= {
            instance.args[0]: write(name, instance.doc) for instance in task.instances
        }
    requests = []

    class Chats(servers.Handler):
        def answer(self, asked):
            requests.append(asked)
            if "response_format" in asked and status != 200:
                return self.send(
                    {"error": {"message": "unknown field response_format"}}, status
                )
            said = texts.get(asked["messages"][-1]["content"], "Hello.")
            return self.send(servers.reply(asked, said))

    server = servers.serve(Chats)
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    try:
        found = run_scores.run(
            tmp_path, ",".join(tasks), "--model_args", f"model=tiny,base_url={url},num_concurrent=8",
            "--apply_chat_template", "--limit", 40, *options, model="local-chat-completions",
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    return found, requests


def accuracies(found, task):
    values = {
        key.partition(",")[0]: value for key, value in found["results"][task].items()
    }
    return values["acc_amb"], values["acc_disamb"]


def test_a_server_is_asked_for_json_and_the_run_says_so(tiny_mirror, tmp_path):
    task = "mbbq_en_gender_identity_gen"

    def write(task, doc):
        return json.dumps({"answer": right_and_another(doc)[0][0]})

    found, requests = served(
        tmp_path, [task], write, "--metadata", '{"structured": true}'
    )
    assert accuracies(found, task) == (1, 1)
    (schema,) = {
        json.dumps(asked["response_format"]["json_schema"]["schema"])
        for asked in requests
    }
    assert json.loads(schema)["properties"] == {
        "answer": {"type": "string", "enum": ["A", "B", "C"]}
    }
    assert found["configs"][task]["metadata"]["structured"] is True


def test_a_server_that_knows_no_forms_is_refused_in_one_line(
    tiny_mirror, tmp_path, capfd
):
    with pytest.raises(AssertionError):  # another status than 0
        served(
            tmp_path, ["mbbq_en_gender_identity_gen"], lambda task, doc: "A",
            "--metadata", '{"structured": true}', status=400,
        )  # fmt: skip
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "error:" in line]
    assert "it can't keep answers to a form: leave out structured (--metadata)" in line


@pytest.mark.parametrize(
    ("task", "value", "says"),
    [
        ("mbbq_en_gender_identity_gen", "yes", "must be true or false"),
        ("mbbq_en_gender_identity", True, "isn't answered by writing a letter"),
    ],
)
def test_a_form_that_cannot_be_asked_for(task, value, says, tiny_mirror):
    with pytest.raises(Exception, match=says):
        built(task, limit=2, structured=value)


def test_a_model_that_is_not_served_is_refused(tiny_mirror, capsys):
    flags = ["--model", "bias-chance", "--metadata", '{"structured": true}']
    assert main(["run", "--tasks", "mbbq_en_gender_identity_gen", *flags]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "the model type ChanceLM can't keep answers to a form: serve" in line
