"""Answers that a server is asked for in a form, and plain ones with an explanation behind: through a server."""

import json

import pytest

from tests.support import run_scores, servers
from tests.support.answering import built


def served(tmp_path, task, write, *options):
    """Run a task through a server that answers with what is written for each prompt; return scores and requests."""
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    texts = {
        instance.args[0]: write(instance.doc)
        for instance in built(task, limit=40).instances
    }
    requests = []

    class Chats(servers.Handler):
        def answer(self, asked):
            requests.append(asked)
            said = texts.get(asked["messages"][-1]["content"], "Hello.")
            return self.send(servers.reply(asked, said))

    server = servers.serve(Chats)
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    try:
        found = run_scores.run(
            tmp_path, task, "--model_args", f"model=tiny,base_url={url},num_concurrent=8",
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

    def write(doc):
        return json.dumps({"answer": "ABC"[doc["order"].index(doc["label"])]})

    found, requests = served(
        tmp_path, task, write, "--metadata", '{"structured": true}'
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
