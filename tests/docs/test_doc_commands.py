"""Commands in the documentation: blocks marked ``sh`` are run, all others have flags and tasks that there are.

The pages on a benchmark of one's own, own prompts, exports, the gate and Python have tests of their own.
"""

import importlib.util
import itertools
import re
import shlex
import sys

import pytest

from lm_eval_bias import catalog
from lm_eval_bias.cli.main import main
from tests.conftest import ROOT
from tests.docs import pages

RUN_ELSEWHERE = {
    "docs/add-a-benchmark.md",
    "docs/own_prompts.md",
    "docs/exports.md",
    "docs/gate.md",
    "docs/python-api.md",
}
RUNNABLE = [page for page in map(pages.name, pages.PAGES) if pages.blocks(page, "sh") and page not in RUN_ELSEWHERE]
NEEDS_DATA = {"docs/dial.md"}  # GG-BBQ's


def words(line):
    """The words of a command line up to a pipe, a redirection or a comment."""
    return list(itertools.takewhile(lambda word: word not in {"|", ">", "&&", "&"}, shlex.split(line, comments=True)))


def commands(text):
    """The commands of this package in some lines, each as its words."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    found = [re.search(r"(?:^|\s)((?:lm-eval-bias|-m lm_eval_bias) [a-z].*)", line.strip()) for line in lines]
    return [words(match[1].replace("-m lm_eval_bias", "lm-eval-bias"))[1:] for match in found if match]


def of_page(path):
    """All commands that a page shows, in blocks and within sentences."""
    code = [token.content for token in pages.tokens(path) if token.type in ("fence", "code_block")]
    code += [t.content for t in pages.inline(path) if t.type == "code_inline" and t.content.startswith("lm-eval-bias ")]
    return [command for one in code for command in commands(one) if command]


@pytest.fixture(scope="module")
def reference():
    """The hook that writes the reference."""
    spec = importlib.util.spec_from_file_location("reference_pages", ROOT / "docs" / "hooks" / "reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def flags(reference):
    """The options of every command."""
    return {name: set(parser._option_string_actions) for name, _, parser in reference._parsers()}


@pytest.mark.parametrize("path", [path for path in pages.PAGES if path.name != "CHANGELOG.md"], ids=pages.name)
def test_flags_and_tasks_are_known(path, flags):
    elsewhere = {"left_handed", "stereoset_it", "bbq", "..."}  # made on a page, the harness's, or the reader's choice
    for command in of_page(path):
        name, *rest = command
        if name in ("COMMAND", "..."):
            continue
        assert name in flags, command
        given = [word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)]
        unknown = [flag for flag in given if flag not in flags[name]]
        assert not unknown, (unknown, command)
        if name == "run" and "--tasks" in rest:
            tasks = rest[rest.index("--tasks") + 1].split(",")
            assert set(tasks) <= set(catalog.entries()) | elsewhere, command


def test_unknown_flags_and_comments_are_noticed():
    assert commands("x\nlm-eval-bias run --tasks a \\\n  --modell b  # c\nA=1 python -m lm_eval_bias ls > f") == [
        ["run", "--tasks", "a", "--modell", "b"],
        ["ls"],
    ]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if page in NEEDS_DATA else []) for page in RUNNABLE]
)
def test_blocks_marked_sh_run(page, tmp_path, request, monkeypatch, capsys):
    if page in NEEDS_DATA:
        request.getfixturevalue("mirror")
    for kind in ("csv", "yaml", "python"):
        for file, body in pages.blocks(page, kind):
            if file:
                (tmp_path / file).write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    every = [command for _, body in pages.blocks(page, "sh") for command in commands(body)]
    assert every
    for command in every:
        if command[0] == "doctor":  # its status says whether scores are recovered: tests/e2e/test_dial.py
            continue
        assert main(command) == 0, command
        assert capsys.readouterr().out, command


def test_python_of_the_reference(capsys):
    ((file, code),) = pages.blocks("docs/reference/python_runs.md", "python")
    exec(compile(code, file, "exec"), {})
    assert -1 < float(capsys.readouterr().out.splitlines()[-1]) < 1


@pytest.mark.slow
@pytest.mark.model
def test_output_of_the_demo_is_as_shown(smollm2, mirror, capsys):
    run = [
        "run",
        "--tasks",
        "occugender_implicit,stereoset_en",
        "--limit",
        "240",
        "--model",
        "hf-packed",
        "--device",
        "cpu",
    ]
    assert main([*run, "--model_args", smollm2]) == 0
    printed = capsys.readouterr().out.splitlines()
    number = re.compile(r"\d+\.\d+")
    by_form = {number.sub("#", " ".join(line.split())): line for line in printed}
    for _, block in pages.blocks("docs/start.md", "text"):
        for line in block.splitlines():
            if line.strip() == "..." or not line.strip(" -"):
                continue
            form = number.sub("#", " ".join(line.split()))
            assert form in by_form, line
            shown, got = (list(map(float, number.findall(one))) for one in (line, by_form[form]))
            assert got == pytest.approx(shown, abs=0.2), line  # other processors round otherwise


def test_card_is_on_a_benchmarks_page(reference):
    section = reference.card("occugender")
    assert section.startswith("## Card\n")
    assert all(f"**{label}**" in section for label in ("Purpose", "Can't say", "Licence", "Known flaws", "Misuse"))
    assert reference.card("no_such_page") == ""


def test_reference_has_every_command_and_main_score(reference, flags):
    from lm_eval_bias import registry

    made = reference.pages()
    for name, options in flags.items():
        assert f"\n## {name}\n" in made["reference/commands.md"]
        for option in options - {"-h", "--help"}:
            assert f"`{option}`" in made["reference/commands.md"], (name, option)
    for benchmark in registry.benchmarks():
        assert f"\n## {benchmark.title}\n" in made["reference/scores.md"]
        names = {score.name for score in catalog.headline(benchmark.name)}
        for score in set(benchmark.main) & names:
            assert f"**`{score}`**" in made["reference/scores.md"]
