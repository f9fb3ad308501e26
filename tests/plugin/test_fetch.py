"""Downloads from a real HTTP server that misbehaves."""

import contextlib
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data import sources
from tests.support import servers
from tests.support.commands import check_refusal, command, disk

NAME = "gg_bbq_group_terms_templates"


class Handler(servers.Handler):
    def do_GET(self):
        self.server.requests += 1
        mode = self.server.mode if self.server.requests <= self.server.wrong else ""
        if mode.isdigit():
            self.send_error(int(mode))
            return
        owner, repo, commit, *path = self.path.strip("/").split("/")
        other = self.server.mirror.joinpath(owner, f"{repo}@{commit}")
        folder = other if other.is_dir() else self.server.mirror.joinpath(owner, repo)
        whole = folder.joinpath(*path).read_bytes()
        half = whole[: len(whole) // 2]
        changed = {
            "wrong": whole[:-1] + b"?",
            "endless": whole + b"x" * 5_000_000,
            "short": half,
            "truncated": half,
        }
        body = changed.get(mode, whole)
        self.send_response(200)
        self.send_header(
            "Content-Length", str(len(whole if mode == "truncated" else body))
        )
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Serves the tiny mirror under the upstream's addresses, the first answers wrongly on request."""

    def __init__(self, mirror):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mirror, self.mode, self.wrong, self.requests = mirror, "", 0, 0
        servers.serve(self)

    def stop(self):
        self.shutdown()
        self.server_close()


@pytest.fixture
def server(tiny_mirror, monkeypatch):
    made = Server(tiny_mirror)
    monkeypatch.delenv("LM_EVAL_BIAS_DATA")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv(
        "LM_EVAL_BIAS_BASE_URL", f"http://127.0.0.1:{made.server_address[1]}"
    )
    yield made
    made.stop()


def cached_files():
    return [p for p in Path(sources.cache_dir()).rglob("*") if p.is_file()]


def test_download_is_verified_and_cached(server):
    path, source = sources.locate(NAME), sources.manifest().files[NAME]
    assert not source.check(path)
    assert path == sources.cached_path(source)
    assert path == sources.cache_dir() / source.repository / source.commit / source.path
    assert path.stat().st_mode & 0o777 == 0o644  # others may share the cache
    sources.locate(NAME)
    assert server.requests == 1
    path.write_bytes(b"damaged")  # in the cache: it is fetched again
    assert not source.check(sources.locate(NAME))
    assert server.requests == 2


@pytest.mark.parametrize(
    "mode", ["404", "500", "wrong", "endless", "short", "truncated", "gone"]
)
def test_bad_answers(server, mode):
    server.mode, server.wrong = mode, 99
    if mode == "gone":
        server.stop()
    message = check_refusal(command("fetch", NAME))
    assert sources.manifest().files[NAME].url in message
    assert "LM_EVAL_BIAS_DATA" in message  # the remedy
    assert mode in message or not mode.isdigit()
    assert cached_files() == []


@pytest.mark.parametrize(("variable", "value", "names"), [
    ("LM_EVAL_BIAS_BASE_URL", "nonsense", "LM_EVAL_BIAS_BASE_URL"),
    ("HF_HUB_OFFLINE", "1", f"fetch {NAME}"),
    ("LM_EVAL_BIAS_CACHE", "/dev/null/below", "LM_EVAL_BIAS_CACHE"),
])  # fmt: skip
def test_what_cannot_be_fetched_from_or_to_is_named(
    variable, value, names, server, monkeypatch
):
    monkeypatch.setenv(variable, value)
    assert names in check_refusal(command("fetch", NAME))


def test_a_full_disk(server):
    with disk(20):
        assert "LM_EVAL_BIAS_CACHE" in check_refusal(command("fetch", NAME))
    assert cached_files() == []


def test_what_is_in_the_cache_is_there_without_a_network(server, monkeypatch):
    path = sources.locate(NAME)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert sources.locate(NAME) == path
    assert server.requests == 1
    content = path.read_bytes()
    path.unlink()
    for damage in (
        lambda: path.write_bytes(content[:-1]),
        path.mkdir,
        lambda: path.symlink_to(path),
    ):
        damage()
        assert NAME in check_refusal(command("fetch", NAME))
        path.rmdir() if path.is_dir() else path.unlink()


def test_bad_mirrors(server, tiny_mirror, tmp_path, monkeypatch):
    source = sources.manifest().files[NAME]
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tiny_mirror))
    assert str(sources.locate(NAME)).startswith(str(tiny_mirror))
    (tiny_mirror / source.repository / source.path).write_bytes(b"")
    for folder in (
        tiny_mirror,
        tmp_path,
        tmp_path / "gone",
    ):  # truncated, without the file, and none
        monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(folder))
        with pytest.raises(BiasError, match=str(folder)):
            sources.locate(NAME)
    assert server.requests == 0


def test_a_mirror_holds_several_revisions_of_a_file(tiny_mirror, capsys):
    source = sources.manifest().files["gg_bbq_names_paper_ambiguous"]
    later = sources.manifest().files["gg_bbq_names_ambiguous"]
    own = tiny_mirror / f"{source.repository}@{source.commit}" / source.path
    plain = tiny_mirror / source.repository / source.path
    assert sources.locate(source.name) == own
    assert sources.locate(later.name) == plain
    own.write_bytes(plain.read_bytes())  # the wrong revision in the commit's folder
    with pytest.raises(BiasError, match=source.commit):
        sources.locate(source.name)
    assert main(["doctor"]) == 1
    assert source.name in capsys.readouterr().out


def test_manifest_is_the_mirror(mirror):
    for source in sources.manifest().files.values():
        assert source.check(sources.mirrored_path(source, mirror)) == ""
        assert source.citation in sources.manifest().citations
        assert len(source.commit) == 40
