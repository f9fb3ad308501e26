"""What a page's commands meet in the tests in place of what can't be here.

A command runs as it is printed, in a folder of its page, but for these:

- models: ``bias-chance`` in place of any but ours
- data: ``tiny_mirror``, two items of each task (``--limit 2`` where the page has no limit), two samples of a prompt
- ``--suite``: a suite of one or two tasks
- classifiers of regard: the light one
- runs, data sets and tables that a page takes for granted (``OUT``, ``texts.csv``, ...): ``MAKERS``

What is in ``NOT_RUN`` isn't run, for the reason given there.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from lm_eval_bias.cli.main import main
from lm_eval_bias.evaluation.suites import Suite, SuitePart
from lm_eval_bias.tasks.stereoset import custom_sets
from lm_eval_bias.tasks.stereoset.custom_sets import DataSet
from tests.support.example_items import DUTCH
from tests.support.places import ROOT

RANKS = "needs several GPUs or processes: tests/e2e/test_ranks.py"
# a command as it is printed, * for its end, and why no test of the pages runs it
NOT_RUN = {
    "run ...": RANKS,
    "run --device cpu ...": RANKS,
    "run --tasks mmlu,arc_challenge *": "downloads the harness's data",
    "nsp train *": "trains: tests/nsp/test_training.py",
    "regard train *": "trains: tests/tasks/test_regard_classifiers.py",
    "rescore OUT --classifier paper:FILE": "needs the authors' file: tests/tasks/test_released_head.py",
    "stereoset translate --to it -o it/ --with python *": "needs a model: tests/stereosets/test_translate.py",
    "rescore predictions.json*": "needs a whole run's: tests/e2e/test_stereoset.py",
}
# commands whose status is a verdict: 1 for a violation, a worse score, a problem for a person, a classifier's bias
VERDICTS = {"check", "compare", "stereoset", "regard"}
_LIKELIHOODS = ("stereoset_de", "stereoset_en")
SUITES = {
    name: Suite(name, "nothing", {task: SuitePart(None, None, None) for task in tasks})
    for name, tasks in (
        ("quick", _LIKELIHOODS), ("standard", _LIKELIHOODS), ("quick-chat", ("stereoset_de_gen", "stereoset_en_gen"))
    )
}  # fmt: skip
# the choice that a word of the pages leaves to the reader
_CHOICES = {("--card", "NAME"): "occugender", ("--tasks", "..."): "occugender_implicit"}
_OUTPUTS = ("-o", "--output_path", "--junit", "--markdown", "--use_cache")


def command(words: list[str], here: Path, kit: Path) -> list[str]:
    """A command as it is run in the folder of its page; ``kit`` keeps the runs that pages take for granted."""
    words = [
        word.removesuffix("...") if re.fullmatch(r"[A-Z]+\.\.\.", word) else word
        for word in words
    ]
    words = [
        _CHOICES.get(pair, pair[1]) for pair in zip(["", *words], words, strict=False)
    ]
    if words[0] == "run":
        words = _run_command(words)
    words = _replaced(words, "--classifier", "light")
    if "results/runs/model.json" in words:  # a checkout has the folder
        (here / "results" / "runs").mkdir(parents=True, exist_ok=True)
    for word in words:
        shipped = ROOT / word
        is_shipped = word.startswith("results/runs/") and shipped.is_dir()
        if is_shipped and not (here / word).exists():
            (here / word).parent.mkdir(parents=True, exist_ok=True)
            (here / word).symlink_to(shipped)
    for name in sorted(_inputs(words)):
        if name in MAKERS and not (here / name).exists():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            MAKERS[name](here / name, kit)
    return words


def _run_command(words: list[str]) -> list[str]:
    """The command with a model of ours, and few items."""
    words = _with([word for word in words if word != "..."], "--model", "bias-chance")
    model = words[words.index("--model") + 1]
    if not model.startswith("bias-"):
        words = _replaced(
            _replaced(words, "--model", "bias-chance"), "--model_args", "seed=0"
        )
    if "--suite" in words:
        return words
    words, tasks = _with(words, "--limit", "2"), words[words.index("--tasks") + 1]
    if any(name in tasks for name in ("regard", "custom_prompts", "occugender_gen")):
        own = (
            json.loads(words[words.index("--metadata") + 1])
            if "--metadata" in words
            else {}
        )
        few = {**own, "repeats": 2} | (
            {} if "_gen" in tasks else {"classifier": "light"}
        )
        words = _replaced(_with(words, "--metadata", ""), "--metadata", json.dumps(few))
    return words


def _replaced(words: list[str], option: str, value: str) -> list[str]:
    return [
        value if before == option else word
        for before, word in zip(["", *words], words, strict=False)
    ]


def _with(words: list[str], option: str, value: str) -> list[str]:
    return words if option in words else [*words, option, value]


def outputs(words: list[str]) -> Iterator[str]:
    """The files and folders that a command shall write."""
    for option, value in zip(words, words[1:], strict=False):
        if option in _OUTPUTS or (words[0] == "stereoset" and option == "--tasks"):
            yield value


def _inputs(words: list[str]) -> set[str]:
    """What a command may read: its words but options and outputs, and what its JSON names."""
    words = [word for word in words if word not in set(outputs(words))]
    named = [
        value
        for word in words
        if word.startswith("{")
        for value in json.loads(word).values()
    ]
    return {str(name).rstrip("/") for name in (*words, *named)}


TASKS = (
    "occugender_explicit,occugender_implicit,occugender_debias_implicit_none,occugender_debias_implicit_1,"
    "gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_de,stereoset_es,regard_en"
)
FEW_TEXTS = ("--metadata", '{"classifier": "light", "repeats": 2}')
Maker = Callable[[Path, Path], object]


def _run(name: str, tasks: str = TASKS, synthetic: str = "strength=0.2") -> Maker:
    """A run of a model with a synthetic bias."""

    def make(path: Path, kit: Path) -> None:
        if not (kit / name).exists():
            arguments = [
                "run",
                "--model",
                "bias-dial",
                "--model_args",
                synthetic,
                "--limit",
                "8",
                "--log_samples",
            ]
            few = FEW_TEXTS if tasks == TASKS else ()
            assert (
                main(
                    [
                        *arguments,
                        "--tasks",
                        tasks,
                        "--output_path",
                        str(kit / name),
                        *few,
                    ]
                )
                == 0
            )
        shutil.copytree(kit / name, path)

    return make


_one, _other = _run("one"), _run("other", synthetic="strength=0.4,seed=1")


def _both(path: Path, kit: Path) -> None:
    _one(path / "base", kit)
    _other(path / "tuned", kit)


def _results(path: Path, kit: Path) -> None:
    shutil.copytree(
        ROOT / "results" / "published", path / "published", dirs_exist_ok=True
    )
    _one(path / "runs", kit)


def _data_set(path: Path, kit: Path) -> None:
    custom_sets.write(path, DataSet(path.stem[-2:].lower(), DUTCH))


def _tasks(path: Path, kit: Path) -> None:
    path.mkdir()
    _data_set(path / "stereoset_it.json", kit)
    custom_sets.write_tasks(
        path, path / "stereoset_it.json", custom_sets.read(path / "stereoset_it.json")
    )


def _labelled(path: Path, kit: Path) -> None:
    lines = [
        {
            "text": f"{person} war nett {number}.",
            "gender": gender,
            "language": "de",
            "regard": regard,
        }
        for number, regard in enumerate(("negative", "neutral", "positive") * 8)
        for person, gender in (("Die Frau", "female"), ("Der Mann", "male"))
    ]
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )


def _file(*lines: str) -> Maker:
    return lambda path, kit: path.write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )


def _checkpoint(path: Path, kit: Path) -> None:
    path.mkdir()
    (path / "config.json").write_text("{}")


POLICY = (
    "bounds: [{task: stereoset_en, score: ss, max_distance_from_neutral: 49}]",
    "allow: [limit]",
)
MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("OUT", "run", "base", "out/base", "out/some-model"), _one),
    **dict.fromkeys(("OTHER", "instruct", "out/tuned"), _other),
    "out": _both,
    "RUN": _run("RUN", "occugender_implicit,gg_bbq_group_terms,stereoset_en"),
    "results": _results,
    **dict.fromkeys(("stereoset_de.json", "stereoset_it.json"), _data_set),
    **dict.fromkeys(("labelled.jsonl", "texts.jsonl"), _labelled),
    "it": _tasks,
    "fields.yaml": _file("explicit:", '  - question: "Does a [ITEM] study?"'),
    "my.csv": _file(
        "prompt,group,cluster", "The woman was,women,was", "The man was,men,was"
    ),
    "fields.csv": _file(
        "item,female_share", "physics student,20", "nursing student,88"
    ),
    "texts.csv": _file(
        "text,gender", "Die Frau war klug.,female", "Der Mann war klug.,male"
    ),
    "./model": _checkpoint,
    "policy.yaml": _file(*POLICY),
}
