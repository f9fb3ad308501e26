"""Evidence: everything an auditor asks for, whole by its own list of hashes, and no claim of conformity."""

import csv
import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter

import pytest

from lm_eval_bias import registry
from lm_eval_bias.exports import evidence
from lm_eval_bias.runs import run_file
from tests.conftest import ROOT
from tests.exports.kit import NAN, a_run, cells, exported
from tests.report.made_runs import harness_folder, hostile_file, write
from tests.report.test_exports import reader

FILES = {
    "README.md", "SHA256SUMS", "cards.json", "clauses.csv", "provenance.json", "report.md", "results.csv",
    "results.json",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, capsys):
    path, content = a_run(tmp_path)
    exported(capsys, path, "--to", "evidence", "-o", tmp_path / "out", "--organization", "Testers")
    return tmp_path / "out", content, path


def test_files_and_hashes(folder):
    out, _, _ = folder
    assert {path.name for path in out.iterdir()} == FILES
    listed = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
    assert set(listed) == FILES - {"SHA256SUMS"}
    for name, digest in listed.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum here")
def test_sha256sum_reads_the_list(folder):
    out, _, _ = folder
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True).returncode == 0
    (out / "results.csv").write_text("changed")
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True).returncode == 1


def test_results_are_those_that_went_in(folder):
    out, content, _ = folder
    rows = list(csv.DictReader((out / "results.csv").open(encoding="utf-8")))
    by_name = {(row["task"], row["score"]): row for row in rows}
    assert len(by_name) == len(cells(content))
    for key, cell in cells(content).items():
        assert by_name[key]["value"] == ("" if cell["value"] is None else str(float(cell["value"])))
    (run,) = json.loads((out / "results.json").read_text(encoding="utf-8"))
    run_file.check(run)
    assert run["tasks"]["stereoset_en"]["scores"]["ss"]["note"] == NAN
    assert f"stereoset\\_en ss: {NAN}" in (out / "README.md").read_text(encoding="utf-8")


def test_provenance(folder):
    out, content, path = folder
    facts = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
    (run,) = facts["runs"]
    assert run["command"] == content["command"]
    assert run["read_from"] == {"file": "tiny.json", "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest()}
    assert run["facts"]["torch"] == "2.9"
    data = run["tasks"]["stereoset_en"]["data_files"]
    assert len(data) == 2
    assert all(re.fullmatch(r"slds-lmu/stereotypes-multi@[0-9a-f]{40}/.*", pin) for pin in data)
    assert facts["organization"] == "Testers"
    assert str(path).rpartition("/")[0] not in (out / "provenance.json").read_text()


def test_a_sample_log_is_hashed(tmp_path, capsys):
    exported(capsys, harness_folder(tmp_path / "run"), "--to", "evidence", "-o", tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "provenance.json").read_text(encoding="utf-8"))
    log = next((tmp_path / "run").rglob("samples_*.jsonl"))
    told = facts["runs"][0]["tasks"]["occugender_explicit"]["sample_log"]
    assert told == {"file": log.name, "sha256": hashlib.sha256(log.read_bytes()).hexdigest()}


def test_every_clause_with_every_benchmark_that_bears_on_it(folder):
    out, _, _ = folder
    rows = list(csv.DictReader((out / "clauses.csv").open(encoding="utf-8")))
    count = Counter((row["framework"], row["clause"]) for row in rows)
    for framework in evidence.mapping()[1]:
        for clause in framework.clauses:
            assert count[framework.name, clause.clause] == (4 if clause.of == "benchmark" else 1)
    regard = [row for row in rows if row["benchmark"] == "regard"]
    assert regard
    assert {row["tasks"] for row in regard} == {"regard_en"}
    assert {row["cannot_say"] for row in regard} == {registry.get("regard").card.cannot}
    for row in rows:
        for name in row["files"].split():
            assert (out / name).is_file()
        assert row["not_shown"]


def test_the_mapping():
    statement, frameworks = evidence.mapping()
    assert "evidence, not conformity" in statement
    assert [framework.name for framework in frameworks] == ["EU AI Act", "ISO/IEC 42001", "NIST AI RMF"]
    names = {clause.clause for framework in frameworks for clause in framework.clauses}
    assert {
        "Art. 10(2)(f)", "Art. 10(2)(g)", "Art. 15(1), (3)", "Annex IV 2(g)", "Art. 55(1)(a)", "A.5.2", "A.5.3",
        "A.5.4", "A.6.2.4", "A.7.4", "MEASURE 2.11", "MAP 2.3", *(f"MEASURE 2.{n}" for n in range(1, 6)),
    } <= names  # fmt: skip
    for framework in frameworks:
        assert len({clause.clause for clause in framework.clauses}) == len(framework.clauses)
        for clause in framework.clauses:
            assert clause.of in ("benchmark", "folder")
            assert clause.about
            assert clause.evidence
            assert clause.gap
            assert set(clause.files) <= FILES
    raw = (ROOT / "lm_eval_bias" / "exports" / "clauses.yaml").read_text(encoding="utf-8")
    for benchmark in registry.by_name():
        assert not re.search(rf"(?<![A-Za-z]){benchmark}(?![a-z])", raw), "the mapping names no benchmark"


def test_nothing_claims_conformity(folder):
    out, _, _ = folder
    text = " ".join((out / "README.md").read_text(encoding="utf-8").split())
    assert "This folder is evidence, not conformity." in text
    for word in ("compliant", "complies", "conforms", "certif"):
        assert word not in text.lower()
    for benchmark in ("occugender", "gg_bbq", "stereoset", "regard"):
        assert registry.get(benchmark).card.paper[:12] in (out / "cards.json").read_text(encoding="utf-8")


def test_a_hostile_run(tmp_path, capsys):
    exported(capsys, write(tmp_path / "h.json", hostile_file()), "--to", "evidence", "-o", tmp_path / "out")
    for name in ("README.md", "report.md"):
        tokens = reader().parse((tmp_path / "out" / name).read_text(encoding="utf-8"))
        kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
        assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    for row in csv.reader((tmp_path / "out" / "clauses.csv").open(encoding="utf-8")):
        assert not any(cell[:1] in tuple("=+-@") for cell in row if cell)
