"""Keys, tokens and headers in ``--model_args`` are neither printed nor saved, nor read from files that hold some."""

from __future__ import annotations

import base64
import json
from unittest.mock import ANY

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import redaction
from lm_eval_bias.runs import provenance, run_discovery
from tests.support import servers
from tests.support.made_runs import edited, harness_folder

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

KEY = "S3cret-0123987654"
RUN = ["run", "--tasks", "gg_bbq_group_terms_gen", "--limit", "2", "--apply_chat_template", "--model",
       "local-chat-completions", "--verbosity", "debug"]  # fmt: skip


class Echo(servers.Handler):
    """A server that repeats all that it is sent, in its answer and its name, or in a refusal."""

    fails = False

    def answer(self, asked):
        varies = {"Content-Length"}
        name = " ".join(
            [
                self.path,
                *(self.headers[key] for key in sorted({*self.headers} - varies)),
            ]
        )
        message = {"role": "assistant", "content": f"A {name} {json.dumps(asked)}"}
        good = {"model": name, "choices": [{"index": 0, "message": message}]}
        said = message["content"]
        self.send(*((said.encode(), 401) if self.fails else (good, 200)))


@pytest.fixture(scope="module")
def place():
    handler = type("Here", (Echo,), {})
    started = servers.serve(handler)
    yield handler, f"127.0.0.1:{started.server_port}/v1/chat/completions"
    started.shutdown()


def given(url, **more):
    return [
        "--model_args",
        json.dumps({"model": "m", "base_url": url, "max_retries": 1, **more}),
    ]


def test_a_query_s_value_is_masked_as_servers_quote_it():
    with redaction.learning():
        redaction.learn({"base_url": "http://host/v1?sig=abc/9DEF+Ghi"})
        assert redaction.masked("abc%2F9DEF%2BGhi or abc/9DEF+Ghi") == "*** or ***"


ADDRESSES = {
    "a query": "http://HOST?sig=KEY",
    "another query": "http://HOST?code=KEY",
    "an encoded name": "http://HOST?%61pi_key=KEY&version=2",
    "an encoded value": "http://HOST?key=S3cret%2D0123987654",
    "a query without a name": "http://HOST?KEY",
    "a query that holds an address": "http://HOST?sig=KEY&next=http://x",
    "two queries": "http://HOST?a=1;KEY?KEY",
    "a fragment": "http://HOST#access_token=KEY",
    "a password": "http://me:KEY@HOST",
    "a token as user": "http://KEY@HOST",
    "a password with an @": "http://me:p@KEY@HOST",
    "a password with a colon": "http://me:a:KEY@HOST",
    "an encoded password": "http://me:S3cret%2D0123987654@HOST",
    "no scheme": "me:KEY@HOST",
    "no scheme, a query": "HOST?sig=KEY",
}
NAMES = (
    "auth_token", "api_key", "apiKey", "refresh_token", "github_token", "tokens", "jwt", "pwd", "passphrase",
    "password", "accessToken", "credentials", "client_secret", "bearer", "cookie", "x-functions-key", "header",
    "extra_headers",
    "default_headers", "cookies", "env",
)  # fmt: skip
FLAGS = {
    "gen_kwargs": [
        "--gen_kwargs",
        '{"temperature": 0, "extra_headers": {"X-Route": "KEY"}}',
    ],
    "nested gen_kwargs": [
        "--gen_kwargs",
        '{"extra_body": {"data": [{"auth": {"bearer": "KEY"}}]}}',
    ],
    "gen_kwargs in pairs": ["--gen_kwargs", "temperature=0,api_key=KEY"],
    "metadata": ["--metadata", '{"hf_token": "KEY"}'],
    "the name of a run": ["--name", "http://me:KEY@host"],
}
WRONG = {
    "words without a name": ["--model_args", "api_key KEY"],
    "a word alone": ["--model_args", "KEY"],
    "a piece without a name": ["--model_args", "model=m,KEY"],
    "no JSON": ["--model_args", '{"api_key": "KEY'],
    "gen_kwargs that are no JSON": [
        "--gen_kwargs",
        "{'api_key': KEY}",
        "--model_args",
        "model=m",
    ],
    "metadata that are none": ["--metadata", "KEY"],
    "a key in a key's place": ["--model_args", "api_key=KEY,KEY"],
}


def spelt(words, host):
    return [word.replace("HOST", host).replace("KEY", KEY) for word in words]


def leaks(tmp_path, capfd):
    """Where a secret stands: streams, and all files' texts and names."""
    found = [text for text in capfd.readouterr() if "0123987654" in text]
    for path in tmp_path.rglob("*"):
        if "0123987654" in str(path):
            found.append(str(path))
        elif path.is_file() and b"0123987654" in path.read_bytes():
            found.append(f"{path}: {path.read_bytes()[:200]!r}")
    return found


PLACEMENTS = {name: [url] for name, url in ADDRESSES.items()}
PLACEMENTS |= {f"an argument {name}": ["http://HOST", name] for name in NAMES}
PLACEMENTS |= {f"in {name}": ["http://HOST", words] for name, words in FLAGS.items()}


def words_of(placement, host):
    url, *more = placement
    arguments = {}
    if more and isinstance(more[0], str):
        is_mapping = "header" in more[0] or more[0] in ("env", "cookies")
        arguments = {more[0]: {"X-Route": KEY} if is_mapping else KEY}
    words = given(spelt([url], host)[0], **arguments)
    return words + (spelt(more[0], host) if more and not arguments else [])


@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_secret_is_masked_where_it_stands_and_where_it_is_repeated(name):
    words = words_of(PLACEMENTS[name], "127.0.0.1:8000/v1")
    with redaction.learning():
        redaction.learn(words)
        said = redaction.masked([*words, f"a server repeats {KEY}."])
    masked = str([said, redaction.command(words)])
    assert "0123987654" not in masked
    assert "127.0.0.1:8000/v1" in masked
    for flag, content in zip(words[::2], words[1::2], strict=True):
        if flag == "--model_args":
            assert "0123987654" not in str(redaction.arguments(json.loads(content)))


def test_forms_that_a_server_repeats_are_masked():
    login = base64.b64encode(f"me:{KEY}".encode()).decode()
    for words, said in (
        (given("http://me:S3cret%2D0123987654@host"), f"Basic {login}"),
        (given("http://host", api_key="abc/9DEF+Ghi"), "key abc%2F9DEF%2BGhi"),
    ):
        with redaction.learning():
            redaction.learn(words)
            assert redaction.masked(said) == f"{said.split()[0]} ***"


@pytest.mark.parametrize("name", WRONG)
def test_malformed_arguments_are_masked(name):
    words = spelt(WRONG[name], "host")
    assert "0123987654" not in str(redaction.command(words))


@pytest.mark.parametrize("name", ["a password with an @", "an argument header"])
def test_a_run_says_no_secret(name, place, tiny_mirror, tmp_path, capfd):
    """By all of the program's doors: screens, logs, results, caches, reports, a board, and a server's refusal."""
    handler, host = place
    handler.fails = False
    out = tmp_path / "out"
    run = [*RUN, *words_of(PLACEMENTS[name], host), *FLAGS["gen_kwargs in pairs"][:1],
           f"temperature=0,api_key={KEY}", "--show_config", "--log_samples", "--output_path", str(out)]  # fmt: skip
    assert main([*run, "--use_cache", str(tmp_path / "cache")]) == 0
    for page in ("r.html", "r.md", "r.tex", "r.json", "r.csv"):
        assert main(["report", str(out), "-o", str(tmp_path / page)]) == 0
    assert main(["leaderboard", str(out), "-o", str(tmp_path / "board.html")]) == 0
    assert main(["report", str(out), "--format", "md"]) == 0
    assert main(["rescore", str(out), "--json"]) == 0
    handler.fails = True
    assert main([*run, "--use_cache", str(tmp_path / "other")]) == 2
    assert leaks(tmp_path, capfd) == []


def test_a_name_of_a_cache_holds_no_secret():
    here, there = (
        provenance.identity("m", {"model": "m", "auth_token": key})
        for key in (KEY, "other")
    )
    assert here == there
    assert KEY not in here


@pytest.mark.parametrize(
    "text", ["name=O'Brien,api_key=KEY", "stop=[1,api_key=KEY", 'a=",api_key=KEY']
)
def test_half_a_pair_of_marks_hides_no_name(text):
    assert "KEY" not in redaction.arguments(text)
    assert "KEY" not in str(redaction.command(["--model_args", text]))


PLAIN = ["max_tokens", "add_bos_token", "tokenizer", "think_end_token", "author", "prefix_token_id", "use_auth_token",
         "tokens_per_second", "key_cache", "monkeys_seen"]  # fmt: skip


@pytest.mark.parametrize("plain", PLAIN)
def test_what_is_no_secret_stays(plain):
    value = True if plain.startswith("use") else "12"
    assert redaction.arguments({plain: value}) == {plain: value}
    with redaction.learning():
        redaction.learn(
            {plain: value, "header": {"Accept": "application/json", "X": "Bearer"}}
        )
        assert (
            redaction.masked("12 application Bearer json")
            == "12 application Bearer json"
        )


@pytest.mark.parametrize(
    "given", [f"seed=1,api_key={KEY}", {"seed": 1, "api_key": KEY}]
)
def test_files_with_secrets_are_read_without(given, tmp_path):
    folder = edited(
        harness_folder(tmp_path),
        lambda content: content["config"].update(model_args=given),
    )
    ((read,), _) = run_discovery.read([folder])
    assert read.record.model.arguments == {"seed": ANY, "api_key": "***"}
    assert KEY not in repr(read)
