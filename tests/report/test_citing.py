"""BibTeX of what a run rests on: every benchmark with what it goes back to, under the right type, once."""

import re

import yaml

import lm_eval_bias
from lm_eval_bias.core import registry
from lm_eval_bias.report import citing, provenance_facts
from tests.support.places import ROOT

QUICK = ROOT / "results" / "runs" / "smollm2-135m-instruct-quick"
ENTRY = re.compile(r"@(\w+)\{([\w-]+),\n((?:  \w+ = \{.*\},\n)+)\}")


def test_a_run_cites_its_benchmarks_their_origins_and_the_harness(said):
    text = said("cite", QUICK)
    found = {key: (kind, fields) for kind, key, fields in ENTRY.findall(text)}
    assert len(found) == text.count("\n@")
    kinds = {key: kind for key, (kind, _) in found.items()}
    statistics = set(citing._of_statistics(citing.known_statistics()["statistics"]))
    assert {"rao-1992", "wilson-1927"} <= statistics & kinds.keys()
    assert {k: v for k, v in kinds.items() if k not in statistics} == {
        "occugender": "inproceedings", "gg-bbq": "inproceedings", "es-bbq": "misc", "kobbq": "article",
        "mbbq": "inproceedings", "stereoset": "misc", "eurogest": "inproceedings", "parrish-2022": "inproceedings",
        "nadeem-2021": "inproceedings", "pikuliak-2024": "inproceedings", "lm-eval-harness": "misc",
        "lm-eval-bias": "misc",
    }  # fmt: skip
    assert "Version 0.4.13" in found["lm-eval-harness"][1]
    for key in ("lm-eval-harness", "lm-eval-bias"):
        assert re.search(r"  year = \{\d{4}\}", found[key][1])
    release = yaml.safe_load((ROOT / "CITATION.cff").read_text())["date-released"]
    assert f"year = {{{release.year}}}" in found["lm-eval-bias"][1]
    assert "% Data: MIT (naver-ai/KoBBQ)" in text
    assert "  title = {{KoBBQ: Korean" in text


def test_what_is_chosen_is_cited(said):
    text = said("cite", QUICK, "--language", "ko")
    keys = [key for _, key, _ in ENTRY.findall(text)]
    assert keys[:2] == ["kobbq", "parrish-2022"]
    statistics = {"wilson-1927", "sidak-1967"}
    assert statistics < set(keys)
    assert {"lm-eval-harness", "lm-eval-bias"} < set(keys)
    assert "eurogest" not in keys


def test_a_benchmark_is_cited_by_its_card(said):
    """Of a task that of its benchmark."""
    card = said("ls", "--card", "gg_bbq_names")
    keys = [key for _, key, _ in ENTRY.findall(card)]
    assert keys == ["gg-bbq", "parrish-2022"]
    assert card == said("ls", "--card", "gg_bbq")


def test_every_benchmark_with_a_paper_has_an_entry():
    listed = citing.of_benchmarks(registry.benchmarks())
    for one in registry.benchmarks():
        assert one.name == "custom_prompts" or one.name.replace("_", "-") in listed
    for entry in listed.values():
        for field in ("author", "title", "year"):
            assert f"  {field} = {{" in entry


def test_an_installation_from_a_repository_is_cited_with_its_commit(monkeypatch):
    address = "https://example.org/p.git"
    monkeypatch.setattr(provenance_facts, "installed_from", lambda: (address, "0f"))
    own = citing.of_runs(lm_eval_bias.load(QUICK).runs)["lm-eval-bias"]
    assert f"url = {{{address}}}" in own
    assert f"note = {{Version {lm_eval_bias.__version__}, 0f}}" in own
