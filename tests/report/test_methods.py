"""Methods paragraphs: of the runs' records alone, with the keys that cite writes, and only of what was used."""

import re

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.report import citing
from tests.support import stand_ins
from tests.support.made_mirror import make_tiny_mirror
from tests.support.made_runs import HOSTILE, hostile_run, write
from tests.support.places import ROOT

QUICK = ROOT / "results" / "runs" / "smollm2-135m-instruct-quick"
KEY = re.compile(r"^@\w+\{([\w-]+),$", re.MULTILINE)
TASKS = "occugender_implicit,gg_bbq_group_terms,stereoset_de,stereoset_en,regard_en,mbbq_en_age,eurogest_de"
KNOWN = citing.known_statistics()
REFERENCES = citing.entries(
    packaged_text("lm_eval_bias.custom_metrics", "statistics.bib")
)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Two runs of models with synthetic biases, with logs."""
    folder = tmp_path_factory.mktemp("methods")
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path_factory.mktemp("mirror"), patch)
        for name, synthetic in (
            ("base", "strength=0.2"),
            ("tuned", "strength=0.4,seed=1"),
        ):
            command = [
                "run",
                "--model",
                "bias-dial",
                "--model_args",
                synthetic,
                "--limit",
                "160",
                "--log_samples",
            ]
            command += [
                "--tasks",
                TASKS,
                *stand_ins.FEW_TEXTS,
                "--output_path",
                str(folder / name),
            ]
            assert main(command) == 0
    return folder


def cited(latex):
    return {
        key for keys in re.findall(r"\\cite\{(.*?)\}", latex) for key in keys.split(",")
    }


@pytest.mark.parametrize(
    "flags", [(), ("--language", "de"), ("--tasks", "occugender_implicit")]
)
@pytest.mark.parametrize("runs", [["base"], ["base", "tuned"]])
def test_keys_are_those_that_cite_writes(out, runs, flags, said):
    paths = [out / name for name in runs]
    entries = KEY.findall(said("cite", *paths, *flags))
    assert len(entries) == len(set(entries))
    text = said("methods", *paths, *flags)
    assert set(re.findall(r"@([\w-]+)", re.sub(r"&#64;", "", text))) == set(entries)
    assert cited(said("methods", *paths, *flags, "--format", "latex")) == set(entries)


def test_only_what_was_used_is_cited(out):
    runs = leb.load(out)
    one = runs[:1]
    by_task = {
        task: cited(one.choose(tasks=task).methods().latex()) & set(REFERENCES)
        for task in ("stereoset_de", "occugender_implicit", "gg_bbq_group_terms")
    }
    shares = {"wilson-1927", "korn-1998", "franco-2019"}
    parts = {"sidak-1967"}  # of logs
    clustered = {"rao-1992", "cameron-2015"}
    assert by_task["stereoset_de"] - {"carter-2017"} == {*clustered, *shares, *parts}
    assert {"searle-1992", "clark-1973"} <= by_task["occugender_implicit"]
    assert not by_task["occugender_implicit"] & {*clustered, "tango-1998"}
    both = cited(runs.choose(tasks="stereoset_de").methods().latex())
    assert both - cited(one.choose(tasks="stereoset_de").methods().latex()) == {
        "holm-1979", "mogstad-2024",
    }  # fmt: skip


def test_what_is_left_out_is_named(out):
    runs = leb.load(out / "base").choose(tasks="stereoset_de")
    text = runs.methods().markdown()
    (_, left) = text.split("**Left out and not measured.**")
    assert "left out, not chosen: " in left
    assert str(out) not in text
    assert "slds-lmu/stereotypes-multi" in text
    assert "EuroGEST" not in text.split("**Prompts.**")[0]


def test_statistics_and_papers_belong_together():
    keys = [key for s in KNOWN["statistics"].values() for key in s.get("cites", ())]
    assert set(keys) == set(REFERENCES)
    for key, fields in REFERENCES.items():
        for name in ("author", "title", "(journal|publisher)"):
            assert re.search(rf"^  {name} = \{{", fields, re.MULTILINE)
        assert f"year = {{{key.rpartition('-')[2]}}}" in fields
    code = "".join(path.read_text() for path in (ROOT / "custom_metrics").glob("*.py"))
    between = {"sidak", "paired", "welch", "holm", "ranks"}  # of several scores or runs
    for name in set(KNOWN["statistics"]) - between:
        assert f'"{name}"' in code


def test_formulas_are_read(tmp_path):
    """By matplotlib, which knows the part of LaTeX that both notebooks and papers set."""
    from matplotlib.mathtext import MathTextParser

    read = MathTextParser("path").parse
    for method in KNOWN["statistics"].values():
        if "formula" in method:
            read(f"${method['formula']}$")
    told = [
        score.formula
        for b in registry.by_name().values()
        for score in catalog.headline(b)
        if score.formula
    ]
    assert len(told) > 20
    for formula in told:
        maths = re.findall(r"\$.*?\$", formula)
        assert maths
        for one in maths:
            read(one)
        assert not set("%&#_") & set(re.sub(r"\$.*?\$", "", formula))


def test_a_hostile_run_stays_text(tmp_path, said):
    path = write(tmp_path / "h.json", hostile_run())
    text = said("methods", path)
    assert "<script" not in text
    code = said("methods", path, "--format", "latex")
    assert r"\input{" not in code
    assert HOSTILE not in code
