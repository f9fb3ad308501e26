"""Answers that a server is asked for in a form, and plain ones with an explanation behind: through a server."""

import json

import pytest

from tests.support import run_scores, servers
from tests.support.answering import built


def test_a_server_is_asked_for_json_and_the_run_says_so(tiny_mirror, tmp_path):
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    task, requests = "mbbq_en_gender_identity_gen", []
    right = {
        one.args[0]: "ABC"[one.doc["order"].index(one.doc["label"])]
        for one in built(task, limit=40).instances
    }

    class Chats(servers.Handler):
        def answer(self, asked):
            requests.append(asked)
            letter = right.get(asked["messages"][-1]["content"])
            self.send(servers.reply(asked, json.dumps({"answer": letter})))

    server = servers.serve(Chats)
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    try:
        found = run_scores.run(
            tmp_path, task, "--model_args", f"model=tiny,base_url={url},num_concurrent=8", "--apply_chat_template",
            "--limit", 40, "--metadata", '{"structured": true}', model="local-chat-completions",
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    scores = run_scores.numbers(found)[task]
    assert (scores["acc_amb"], scores["acc_disamb"]) == (1, 1)
    (schema,) = {
        json.dumps(asked["response_format"]["json_schema"]["schema"])
        for asked in requests
    }
    assert json.loads(schema)["properties"] == {
        "answer": {"type": "string", "enum": ["A", "B", "C"]}
    }
    assert found["configs"][task]["metadata"]["structured"] is True
