"""Every command of this package that the documentation shows is run.

``stand_ins.py`` says what is there in place of models, servers, data and runs, and what isn't run for which reason.
"""

import fnmatch
import itertools
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from lm_eval_bias.cli.main import main
from lm_eval_bias.evaluation import suites
from lm_eval_bias.report import run_output
from lm_eval_bias.runs import run_discovery
from tests.support import doc_pages as pages
from tests.support import stand_ins
from tests.support.made_mirror import make_tiny_mirror
from tests.support.places import ROOT

# pages whose commands follow each other in ways that their own tests know
RUN_ELSEWHERE = {
    "docs/add-a-benchmark.md": "tests/third_party/test_guide.py",
    "docs/add_a_model_family.md": "tests/third_party/test_guide.py",
    "docs/custom_prompts.md": "tests/e2e/test_custom_prompts.py",
}
# pages whose output no test can make again, as it takes a real model; what it is compared with instead
SAVED_OUTPUT = {"README.md": "results/runs/smollm2-135m-instruct-quick"}
LOG_LINE = "docs/shared_prefixes.md"  # its numbers are the machine's: compared with the code that writes the line
NOTEBOOK = "docs/python-api.md"  # tests/plugin/test_api.py runs its Python


def words(line):
    """The words of a command line up to a pipe or a comment."""
    return list(
        itertools.takewhile(
            lambda word: word not in {"|", "&&", "&"}, shlex.split(line, comments=True)
        )
    )


def commands(text):
    """The commands of this package in some lines, each as its words."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    found = [
        re.search(r"(?:^|\s)((?:lm-eval-bias|-m lm_eval_bias) [a-z].*)", line.strip())
        for line in lines
    ]
    return [
        words(match[1].replace("-m lm_eval_bias", "lm-eval-bias"))[1:]
        for match in found
        if match
    ]


def shown(page):
    """Where a page may show commands: blocks, workflows, sentences (but a command's bare name is none)."""
    for token in pages.tokens(ROOT / page):
        kind = token.info.split()[0] if token.info else ""
        if pages.is_shell(token):
            yield token.content
        if token.type == "fence" and kind == "yaml":
            yield from workflow_steps(yaml.load(token.content, yaml.BaseLoader))  # noqa: S506 (texts alone)
        for child in token.children or ():
            if child.type == "code_inline" and re.match(
                r"lm-eval-bias \S+ .", child.content
            ):
                yield child.content


def workflow_steps(content):
    """The commands of a workflow."""
    if isinstance(content, str):
        if re.search(r"^lm-eval-bias ", content, re.MULTILINE):
            yield content
    elif isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from workflow_steps(part)


def is_not_run(command):
    """The entry of the list that a command falls under."""
    return next(
        (
            entry
            for entry in stand_ins.NOT_RUN
            if fnmatch.fnmatchcase(" ".join(command), entry)
        ),
        None,
    )


PRINTED = {
    page: found
    for page in map(pages.name, pages.PAGES)
    if page != "CHANGELOG.md"
    and (
        found := [(block, commands(block)) for block in shown(page) if commands(block)]
    )
}


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """Runs for the pages, and data in the released form."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path_factory.mktemp("mirror"), patch)
        listing = suites.listing()
        patch.setattr(suites, "listing", lambda: listing)
        patch.setattr(
            suites, "load", lambda name: stand_ins.SUITES[name.partition("+")[0]]
        )
        yield tmp_path_factory.mktemp("kit")


DONE = set()  # commands of pages that were run


@pytest.mark.parametrize(
    "page", [page for page in PRINTED if page not in RUN_ELSEWHERE]
)
def test_commands_run(page, kit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for file, body in [
        block
        for kind in ("csv", "yaml", "python")
        for block in pages.blocks(page, kind)
    ]:
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(body, encoding="utf-8")
    texts = defaultdict(str)
    for block, printed in PRINTED[page]:
        for command in printed:
            if is_not_run(command) or block.startswith("#!"):  # a job of a cluster
                continue
            command, file = (
                (command[:-2], Path(command[-1])) if ">" in command else (command, None)
            )
            given = stand_ins.command(command, tmp_path, kit)
            writes = file or any(stand_ins.outputs(given))
            if tuple(given) in DONE and not (writes or pages.outputs(page)):
                continue  # another page's, which ran
            DONE.add(tuple(given))
            capsys.readouterr()
            status = main(given)
            output = capsys.readouterr()
            verdict = command[0] in stand_ins.VERDICTS and status == 1
            assert status == 0 or verdict, (given, output.err[-2000:])
            texts[block] += output.out
            assert output.out or any(stand_ins.outputs(given)), given
            if file:
                file.write_text(output.out, encoding="utf-8")
            for name in stand_ins.outputs(given):
                assert list(tmp_path.glob(f"{name.rstrip('/')}*")), (name, given)
    if page not in (*SAVED_OUTPUT, LOG_LINE):
        for shown_output, above in pages.outputs(page):
            pages.compare_output(shown_output, texts[above])


@pytest.mark.parametrize("page", SAVED_OUTPUT)
def test_output_of_a_real_model_is_that_of_its_saved_run(page):
    runs, _ = run_discovery.read([ROOT / SAVED_OUTPUT[page]])
    printed = run_output.scores(list(runs[0].tasks.values()), "main")
    ((block, above),) = pages.outputs(page)
    assert "--suite quick" in above
    suites_run = {task.metadata["suite"]["name"] for task in runs[0].tasks.values()}
    assert suites_run == {"quick"}
    pages.compare_output(block, printed)


def test_python_that_runs_tasks(capsys):
    ((file, code),) = [block for block in pages.blocks(NOTEBOOK, "python") if block[0]]
    exec(compile(code, file, "exec"), {})
    assert -1 < float(capsys.readouterr().out.splitlines()[-1]) < 1
