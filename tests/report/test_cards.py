"""Cards: complete for every benchmark of this package, and read by people and programs."""

import json
import re

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import Card
from lm_eval_bias.report import content, listings
from tests.support.made_runs import run_file, write

CARDS = {benchmark.name: benchmark.card for benchmark in registry.benchmarks()}


def said(capsys, *arguments, status=0):
    capsys.readouterr()
    assert main([*arguments]) == status
    return capsys.readouterr()


@pytest.mark.parametrize("name", CARDS)
def test_every_field_was_written(name):
    card = CARDS[name]
    for field, value in card._asdict().items():
        assert value or field == "link", field
    assert not isinstance(card.flaws, str)
    assert sum(bool(re.search(r"\d", flaw)) for flaw in card.flaws) >= 2, "flaws come with their numbers"


@pytest.mark.parametrize("name", [name for name in CARDS if (registry.get(name).folder / "sources.json").is_file()])
def test_licences_are_those_of_the_pinned_files(name):
    files = json.loads((registry.get(name).folder / "sources.json").read_text(encoding="utf-8"))["files"]
    pinned = {one["licence"] for one in files}
    assert pinned
    for licence in pinned:
        for part in licence.replace("none stated", "states none").split("; StereoSet itself is "):
            assert part in CARDS[name].licence, part


def test_a_card_on_the_terminal(capsys):
    text = said(capsys, "ls", "--card", "stereoset").out
    assert text.startswith("Multilingual StereoSet (stereoset)\n\nPurpose\n  Whether a model prefers")
    assert max(map(len, text.splitlines())) <= 100
    one_line = " ".join(text.split())
    card = CARDS["stereoset"]
    for value in (card.measures, card.population, card.licence, card.misuse, card.link, *card.flaws):
        assert value in one_line
    # a variant, a task and a group lead to the same card
    for name in ("stereoset_choices", "stereoset_de_intra", "stereoset_gen"):
        assert said(capsys, "ls", "--card", name).out == text


def test_a_card_as_data(capsys):
    data = json.loads(said(capsys, "ls", "--card", "regard", "--json").out)
    card = CARDS["regard"]
    assert data["flaws"] == list(card.flaws)
    assert data["licence"] == card.licence
    assert data["link"] is None  # it has none


def test_refusals(capsys, monkeypatch):
    assert "Did you mean stereoset" in said(capsys, "ls", "--card", "stereosett", status=2).err
    assert "--suites and --card" in said(capsys, "ls", "--card", "stereoset", "--suites", status=2).err
    monkeypatch.setattr(registry.get("regard"), "card", None)
    assert "regard has no card" in said(capsys, "ls", "--card", "regard", status=2).err


def test_a_card_with_what_every_card_had_before(capsys, monkeypatch):
    monkeypatch.setattr(registry.get("regard"), "card", Card("Manners.", "More.", "Guesses.", "Nothing.", "X"))
    text = said(capsys, "ls", "--card", "regard").out
    assert f"Population\n  {listings.UNWRITTEN}\n" in text
    assert listings.card_details(registry.get("regard").card) == []


def test_reports_embed_the_card(tmp_path, capsys):
    run = write(tmp_path / "run.json", run_file(tasks=["stereoset_en"]))
    assert main(["report", run, "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    start = page.index('<div class="card">')
    folded = page[start : page.index("</details>", start)]
    assert folded.index("<details>") > folded.index("Unlike the paper")
    for flaw in CARDS["stereoset"].flaws:
        assert flaw.replace("'", "&#39;") in folded
    markdown = said(capsys, "report", run, "--format", "md").out
    assert f"- Misuse: {CARDS['stereoset'].misuse}" in markdown


def test_a_page_without_what_was_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(content.registry.get("stereoset"), "card", Card("A.", "B.", "C.", "D.", "E."))
    run = write(tmp_path / "run.json", run_file(tasks=["stereoset_en"]))
    assert main(["report", run, "-o", str(tmp_path / "page.html")]) == 0
    assert "<summary>Who, how many" not in (tmp_path / "page.html").read_text(encoding="utf-8")
