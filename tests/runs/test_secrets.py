"""Keys, tokens and headers in ``--model_args`` are neither printed nor saved, nor read from files that hold some."""

from __future__ import annotations

import json
from unittest.mock import ANY

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.runs import provenance, run_discovery
from tests.support import servers, tiny
from tests.support.made_runs import edited, harness_folder

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

KEYS = ("S3cret-token", "S3cret-header", "S3cret-password", "S3cret-parameter")
RUN = ["run", "--tasks", "gg_bbq_group_terms_gen", "--limit", "2", "--model"]


@pytest.fixture
def server():
    started = servers.Server()
    yield started
    started.close()


def arguments(server):
    """A chat client of the server with every kind of secret."""
    url = f"{server.url}/chat/completions?api_key={KEYS[3]}".replace(
        "://", f"://me:{KEYS[2]}@"
    )
    header = {"Authorization": f"Bearer {KEYS[1]}"}
    return json.dumps(
        {
            "model": "m",
            "base_url": url,
            "auth_token": KEYS[0],
            "header": header,
            "max_retries": 1,
        }
    )


def texts(folder):
    return {
        p: p.read_bytes().decode("utf-8", "replace")
        for p in folder.rglob("*")
        if p.is_file()
    }


def secret_in(text):
    return [key for key in KEYS if key in text]


def test_a_run_says_no_secret(server, tiny_mirror, tmp_path, capfd):
    out, run = (
        tmp_path / "out",
        [*RUN, "local-chat-completions", "--apply_chat_template"],
    )
    run += [
        "--model_args",
        arguments(server),
        "--show_config",
        "--verbosity",
        "debug",
        "--log_samples",
    ]
    assert (
        main([*run, "--use_cache", str(tmp_path / "cache"), "--output_path", str(out)])
        == 0
    )
    for form in ("html", "md", "latex"):
        assert (
            main(
                [
                    "report",
                    str(out),
                    "--format",
                    form,
                    "-o",
                    str(tmp_path / f"report.{form}"),
                ]
            )
            == 0
        )
    assert main(["report", str(out), "--format", "md"]) == 0
    assert main(["rescore", str(out)]) == 0
    assert not secret_in("".join(capfd.readouterr()))
    saved = texts(tmp_path)
    assert any("results_" in path.name for path in saved)
    assert not {path: keys for path, text in saved.items() if (keys := secret_in(text))}
    (read,) = run_discovery.read([str(out)])[0]
    assert '"model": "m"' in read.command
    assert '"auth_token": "***"' in read.command
    here, there = (
        provenance.identity("m", {"model": "m", "auth_token": key}) for key in KEYS[:2]
    )
    assert here == there  # the name of a cache
    assert not secret_in(here)


@pytest.mark.parametrize("fault", [500, b"[]"])
def test_a_failing_run_says_no_secret(fault, server, tiny_mirror, capfd):
    server.fail(fault)
    run = [
        *RUN,
        "local-chat-completions",
        "--apply_chat_template",
        "--model_args",
        arguments(server),
    ]
    assert main(run) == 2
    assert not secret_in("".join(capfd.readouterr()))


def test_a_model_that_cannot_be_loaded_says_no_secret(tmp_path, capfd):
    wrong = f"pretrained={tiny.gpt2(tmp_path)},dtype=http://me:{KEYS[2]}@host"  # which torch repeats
    assert (
        main(["run", "--tasks", "occugender", "--model", "hf", "--model_args", wrong])
        == 2
    )
    said = "".join(capfd.readouterr())
    assert "://me:***@host" in said
    assert not secret_in(said)


@pytest.mark.parametrize(
    "given", [f"seed=1,api_key={KEYS[0]}", {"seed": 1, "api_key": KEYS[0]}]
)
def test_files_with_secrets_are_read_without(given, tmp_path):
    folder = edited(
        harness_folder(tmp_path),
        lambda content: content["config"].update(model_args=given),
    )
    ((read,), _) = run_discovery.read([folder])
    assert read.record.model.arguments == {"seed": ANY, "api_key": "***"}
    assert not secret_in(repr(read))
