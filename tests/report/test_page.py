"""The page: whole, its own, and nobody else's."""

import base64
import hashlib
import html.parser
import json
import re
from collections import Counter

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, errors, pen, registry
from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.data import sources
from lm_eval_bias.report import svg, templates
from tests.support.made_runs import CLASSIFIER, HOSTILE, TASKS, harness_folder, hostile_file, run_file, write
from tests.support.places import ROOT

VOID = {"meta", "link", "br", "img", "input"}
ALLOWED = set(
    "html head meta title link style body a header h1 h2 h3 h4 p nav ul li main section aside div span dl dt dd small "
    "strong em figure figcaption table caption thead tbody tr th td button details summary pre footer script "
    "svg desc defs g path line use text clippath rect pattern".split()
)


class Read(html.parser.HTMLParser):
    """Tags, attributes and text of a page, as a browser's parser would find them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.raw, self.text = Counter(), [], {"script": "", "style": ""}, []
        self.stack = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> without a beginning"
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] in self.raw:
            self.raw[self.stack[-1]] += data
        else:
            self.text.append(data)

    def values(self, name):
        return [value for _, own, value in self.attributes if own == name]


def made(paths, tmp_path, *more):
    out = tmp_path / "out.html"
    assert main(["report", *map(str, paths), "-o", str(out), *more]) == 0
    return out.read_text(encoding="utf-8")


def check_closed(text, more=frozenset()):
    """What holds for every page, whatever it is about."""
    found = Read(text)
    assert not found.stack
    assert set(found.tags) <= ALLOWED | more
    assert found.tags["script"] == found.tags["style"] == 1
    for tag, name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("style", "src", "srcset", "action", "formaction", "ping", "background")
        if name == "href":
            own = (
                value.startswith("#")
                or value in {benchmark.card.link for benchmark in registry.benchmarks()}
                or (tag, value) == ("link", "data:,")
                or re.fullmatch(r"out-items/r\d+t\d+\.html#score-\d+", value)
                or value == "../out.html"
            )
            assert own, (tag, value)
        if "url(" in value:
            assert re.fullmatch(r"url\(#[\w.-]+\)", value)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    wanted = [v.lstrip("#") for t, n, v in found.attributes if n == "href" and v.startswith("#")]
    wanted += [part for value in found.values("aria-labelledby") for part in value.split()]
    assert set(wanted) <= set(ids)
    policy = dict(
        part.strip().split(" ", 1) for part in next(v for v in found.values("content") if "src" in v).split(";")
    )
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        digest = base64.b64encode(hashlib.sha256(found.raw[tag].encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'"
    assert "unsafe" not in str(policy)
    return found


FIGURES = {
    "occugender-variance", "gg_bbq-plane", "gg_bbq-prompts-plane", "gg_bbq-wordings", "stereoset-tests",
    "stereoset-types", "stereoset-variants", "r1t7-regard",
}  # fmt: skip


def test_all_of_a_run(whole_page):
    found = check_closed(whole_page.read_text(encoding="utf-8"))
    said = " ".join(" ".join(found.text).split())
    assert "Bias report: tiny" in said
    for benchmark in {registry.family(catalog.entries()[task].benchmark) for task in TASKS}:
        card = benchmark.card
        assert benchmark.title in said
        assert card.measures in said
        assert card.cannot in said
        assert card.paper in said
    titles = {value.removesuffix("-title") for value in found.values("id") if value.endswith("-title")}
    assert titles == FIGURES
    assert found.values("class").count("figure") + found.values("class").count("panels") == len(FIGURES)
    assert "(lms): 0 to 100, best 100; stereotypes preferred (ss): 0 to 100, neutral 50" in said
    assert "slds-lmu/stereotypes-multi, commit" in said
    assert "labels are weak" in said
    assert "lm-eval-bias run --tasks occugender_explicit" in said
    assert "Seeds (random, numpy, torch, few-shot)" in said
    assert "occugender_explicit: not shown, there is no sample log" in said
    # every table that can be sorted has a button and a direction in each heading
    assert found.tags["button"] == found.values("aria-sort").count("none") > 50
    assert all(v == "0" for v in found.values("tabindex"))


def test_figures_say_their_numbers(a_run, whole_page):
    text = whole_page.read_text(encoding="utf-8")
    described = re.search(r'id="stereoset-types-desc">(.*?)</p>', text)[1]
    score = json.loads(open(a_run).read())["tasks"]["stereoset_de"]["scores"]["religion/ss"]
    low, high = score["interval"]
    assert f"stereotypes preferred, religion, stereoset_de: {score['value']:.1f} [{low:.1f}, {high:.1f}]" in described


def test_colours_follow_the_page(whole_page):
    found = check_closed(whole_page.read_text(encoding="utf-8"))
    for tag, name, value in found.attributes:
        if name in ("fill", "stroke"):
            assert value == "none" or value.startswith(("url(#", "var(--")), (tag, value)
    css = templates._resource("page.css")
    used = {name for _, _, value in found.attributes for name in re.findall(r"var\(--([\w-]+)\)", value)}
    assert {"ink", "series-1", "positive"} <= used <= set(pen.ROLES)
    assert all(f"--{name}: " in css for name in used)


def test_a_figure_that_fails_is_left_out_and_its_benchmark_named(monkeypatch):
    def draw(figure):
        raise OSError("no such font")

    monkeypatch.setattr(errors, "FAULTS", {})
    with pytest.warns(
        errors.BenchmarkFault, match="^the benchmark toy: the figure 'Bars' failed .OSError: no such font"
    ):
        assert svg.inline(Drawing("toy-bars", "Bars", "None.", "Nothing.", 2.0, draw), "toy") == ""


def test_the_same_runs_give_the_same_page(a_run, whole_page, tmp_path):
    assert made([a_run], tmp_path) == whole_page.read_text(encoding="utf-8")


def test_several_runs_beside_each_other(tmp_path):
    one = write(tmp_path / "a.json", run_file(tasks=["stereoset_de", "regard_en"]))
    other = write(tmp_path / "b.json", run_file("other", ["stereoset_de", "regard_en"], shift=7))
    found = check_closed(made([one, other], tmp_path))
    said = " ".join(" ".join(found.text).split())
    assert "Bias report on 2 runs" in said
    assert "tiny: stereoset_de" in said
    assert "other: stereoset_de" in said
    assert {"r1t2-regard", "r2t2-regard"} <= {v.removesuffix("-title") for v in found.values("id")}


def test_hostile_file_comes_out_as_text(tmp_path):
    path = write(tmp_path / "h.json", hostile_file())
    found = check_closed(made([path], tmp_path))
    assert "img" not in found.tags
    said = "".join(found.text)
    assert HOSTILE in said
    assert "&amp;" in said  # the name's own, not one too many
    assert "&amp;amp;" not in said


def test_unknown_benchmark_is_reported_as_such(tmp_path):
    folder = harness_folder(tmp_path / "h")
    path = next((tmp_path / "h").rglob("results_*.json"))
    path.write_text(path.read_text().replace('"benchmark": "occugender"', '"benchmark": "newer"'))
    said = "".join(check_closed(made([folder], tmp_path)).text)
    assert "Benchmarks that this version doesn't know" in said
    assert "stereotype_gap" in said


def test_occupations_from_the_sample_log(tmp_path):
    found = check_closed(made([harness_folder(tmp_path / "h")], tmp_path))
    assert "r1t1-occupations-title" in found.values("id")
    said = "".join(found.text)
    assert "Occupations of occugender_explicit" in said
    # the most female-dominated occupation of Table 5 is named in figure and table
    assert said.count("skincare specialist") >= 3
    assert "Trial run: 80 of 1,000 items of occugender_explicit" in " ".join(said.split())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda log: log.unlink(), "there is no sample log"),
        (lambda log: log.write_text(""), "the run wrote no samples"),
        (lambda log: log.write_text(log.read_text()[:-900]), "truncated or damaged"),
        (lambda log: log.write_text(log.read_text().splitlines()[0]), "1 documents, but the run scored 80"),
        (lambda log: log.write_text(log.read_text().replace('"words"', '"word"')), "damaged"),
        (lambda log: log.write_text(log.read_text().replace('"-6', '"x')), "no requests or answers"),
        (lambda log: log.write_bytes(b"\xff" + log.read_bytes()), "not UTF-8"),
    ],
)
def test_sample_logs_that_cannot_be_read_are_named(tmp_path, damage, reason):
    folder = harness_folder(tmp_path / "h")
    damage(next((tmp_path / "h").rglob("samples_*.jsonl")))
    found = check_closed(made([folder], tmp_path))
    assert "r1t1-occupations-title" not in found.values("id")
    said = "".join(found.text)
    assert "occugender_explicit: not shown, " in said
    assert reason in said


def test_good_runs_are_reported_beside_bad_ones(tmp_path, capsys):
    folder = tmp_path / "runs"
    write(folder / "good.json", run_file(tasks=["gg_bbq_names"]))
    (folder / "results_x.json").write_text('{"results": {')
    write(folder / "results_old.json", {"results": {"a": {}}, "configs": {}, "config": {}})
    write(folder / "partial.json", {"tasks": {}})
    write(folder / "unrelated.json", [1, 2])
    (folder / "samples_stereoset_en_2026-01-02T03-04-05.6.jsonl").write_text("")
    empty = tmp_path / "empty"
    empty.mkdir()
    said = "".join(check_closed(made([folder, empty], tmp_path)).text)
    errors = capsys.readouterr().err
    for reason in (
        "truncated or damaged",
        "no task of this package",
        "not a valid run file",
        "unfinished",
        "holds no run",
    ):
        assert reason in said
        assert reason in errors
    assert "unrelated.json" not in errors
    assert "Bias report: tiny" in said


def test_regard_never_without_facets(tmp_path, capsys):
    content = run_file(tasks=["regard_en", "occugender_explicit"])
    scores = content["tasks"]["regard_en"]["scores"]
    content["tasks"]["regard_en"]["scores"] = {k: v for k, v in scores.items() if not k.startswith("sexualization")}
    path = write(tmp_path / "r.json", content)
    said = "".join(check_closed(made([path], tmp_path)).text)
    assert "regard alone misleads" in said
    assert "negative_gap" not in said
    capsys.readouterr()
    for kind in ("md", "csv", "latex"):
        assert main(["report", path, "--format", kind]) == 0
        out = capsys.readouterr().out
        assert "gap" in out
        assert "negative" not in out.replace("(negative, neutral", "")


def test_warnings_of_a_run(tmp_path):
    content = run_file(tasks=["occugender_implicit", "stereoset_tr", "regard_de"])
    content["provenance"] |= {"seeds": [None] * 4, "transformers": None, "chat_template": "abc"}
    tasks = content["tasks"]
    tasks["occugender_implicit"]["scores"]["coverage"] |= {"value": 0.05, "interval": [0.04, 0.06]}
    tasks["occugender_implicit"]["metadata"] = {"words": "pronouns"}
    tasks["occugender_implicit"]["documents"] = 40
    tasks["occugender_implicit"]["scores"]["stereotype_gap"] |= {"interval": [-0.9, 0.9], "dof": 2.0}
    tasks["stereoset_tr"]["scores"]["lms"] |= {"value": 55.0, "interval": [53.0, 57.0]}
    tasks["stereoset_tr"]["scores"]["ss"]["note"] = "a note of its own"
    path = write(tmp_path / "w.json", content)
    found = check_closed(made([path], tmp_path))
    said = "".join(found.text).replace("Trial run:\n", "Trial run:")
    for told in (
        "Low coverage: the word lists cover 5.0%",
        "words=pronouns",
        "Trial run: 40 of 1,000 items of occugender_implicit",
        "covers 90% of its range",
        "Few independent groups of items (3.0)",
        "Low LMS, near or below chance (50): lms 55.0 [53.0, 57.0]",
        "A note of its own",
        "no version of transformers, no seeds",
        "The prompts use a chat template",
        "Labels are weak",
        "Few texts in the test (3)",
    ):
        assert told in said, told


def test_a_sound_run_has_no_warnings_but_the_classifier_s(tmp_path):
    content = run_file(tasks=["gg_bbq_names", "regard_en"])
    content["tasks"]["regard_en"]["metadata"]["classifier_used"] = {**CLASSIFIER, "name": "sbert", "warning": ""}
    scores = content["tasks"]["regard_en"]["scores"]
    answers = content["tasks"]["gg_bbq_names"]["scores"]
    for cell, value in (
        (scores["dropped"], 0.01), (scores["unfinished"], 0.01), (scores["distinct"], 0.99),
        (scores["all/n"], 1990.0), (answers["unanswered"], 0.0), (answers["acc_disamb"], 0.9),
    ):  # fmt: skip
        cell |= {"value": value, "interval": None}
    for name in [name for name in answers if name.endswith(("_bytes", "_tokens"))]:
        answers[name] = answers[name.rpartition("_")[0]]  # lengths make no difference
    for name, task in content["tasks"].items():
        entry = catalog.entries()[name]
        inputs = {"documents": "0" * 64, "files": sources.hashes(entry.data)}
        task |= {"version": entry.metadata["version"], "metadata": {**task["metadata"], "inputs": inputs}}
    content["provenance"]["seeds"] = [0, 1234, 1234, 1234]
    path = write(tmp_path / "s.json", content)
    text = made([path], tmp_path)
    assert 'class="warning"' not in text
    assert 'href="#warnings"' not in text


def test_name(tmp_path, capsys):
    one = write(tmp_path / "a.json", run_file(tasks=["gg_bbq_names"]))
    assert "Bias report: My &lt;model&gt;" in made([one], tmp_path, "--name", "My <model>")
    other = write(tmp_path / "b.json", run_file(tasks=["gg_bbq_names"], shift=1))
    assert main(["report", one, other, "--name", "x", "--format", "csv"]) == 2
    assert "--name is for a single run, but there are 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["RUN"], "needs a file"),
        (["RUN", "-o", "x.pdf"], "no format goes with .pdf"),
        (["RUN", "-o", "nowhere/x.html"], "cannot be written"),
        (["nothing", "-o", "x.html"], "no such file or folder"),
        (["EMPTY", "-o", "x.html"], "no run found"),
    ],
)
def test_errors_are_one_line(a_run, tmp_path, capsys, monkeypatch, arguments, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    places = {"RUN": a_run, "EMPTY": str(tmp_path / "empty")}
    assert main(["report", *(places.get(argument, argument) for argument in arguments)]) == 2
    errors = capsys.readouterr().err
    assert reason in errors
    assert errors.startswith("lm-eval-bias: error: ")
    assert errors.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_contrast_of_the_palette(theme):
    blocks = re.findall(r":root \{(.*?)\}", templates._resource("page.css"), re.S)
    assert len(blocks) == 3
    # paper has its own ground, and the light theme's marks
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[0] + blocks[theme]))
    for ground in ("ground", "raised"):
        for text in ("ink", "muted", "link"):
            assert _contrast(colour[text], colour[ground]) >= 4.5
        for mark in pen.SERIES:
            assert _contrast(colour[mark], colour[ground]) >= 3
    assert _contrast(colour["warn-ink"], colour["warn-ground"]) >= 4.5
    for segment in pen.SEGMENTS:
        assert _contrast(colour[f"on-{segment}"], colour[segment]) >= 4.5


def test_warnings_come_by_weight_and_the_light_ones_are_folded(tmp_path):
    content = run_file(tasks=["stereoset_tr"])
    content["provenance"] |= {"transformers": None}
    scores = content["tasks"]["stereoset_tr"]["scores"]
    scores["lms"] |= {"value": 55.0, "interval": [53.0, 57.0]}
    scores["ss"]["note"] = "a note of its own"
    text = made([write(tmp_path / "w.json", content)], tmp_path)
    section = text[text.index('<section aria-labelledby="conclude">') :]
    section = section[: section.index("</section>")]
    places = [
        section.index(part) for part in ("Low LMS", "<details>", "no version of transformers", "A note of its own")
    ]
    assert places == sorted(places)
    assert "stereotypes preferred" in section  # the note's score, by the name that people know


def test_the_verdict_says_what_a_score_can_bear(tmp_path):
    content = run_file(tasks=["stereoset_en", "gg_bbq_names"])
    scores = content["tasks"]["stereoset_en"]["scores"]
    scores["lms"] |= {"value": 90.0, "interval": [88.0, 92.0]}
    scores["ss"] |= {"value": 60.0, "interval": [55.0, 65.0]}
    for name in ("diff_bias_amb", "diff_bias_disamb"):
        content["tasks"]["gg_bbq_names"]["scores"][name] |= {"value": 0.01, "interval": [-0.1, 0.12]}
    content["tasks"]["gg_bbq_names"]["scores"]["unanswered"] |= {"value": 0.0, "interval": None}
    content["tasks"]["gg_bbq_names"]["scores"]["acc_disamb"] |= {"value": 0.9, "interval": [0.8, 0.95]}
    text = made([write(tmp_path / "v.json", content)], tmp_path)
    verdicts = re.search(r'<div class="verdicts">(.*?)</div>', text, re.S)[1]
    assert re.findall("<strong>(.*?)</strong>", verdicts) == ["no clear direction", "prefers stereotypes"]
    assert "60.0 [55.0, 65.0], neutral 50" in text
    assert "90.0 [88.0, 92.0], best 100" in text
    assert ("against stereotypes" in text) == ("towards stereotypes" in text) == ("worst" in text) is True
    scores["ss"] |= {"value": 40.0, "interval": None, "stderr": None}
    scores["lms"] |= {"value": 51.0, "interval": [49.0, 53.0]}
    text = made([write(tmp_path / "v.json", content)], tmp_path)
    verdicts = re.search(r'<div class="verdicts">(.*?)</div>', text, re.S)[1]
    # what unmakes a verdict stands in front of it, and it isn't bold then
    assert '<span class="beware">chance level</span>: no verdict without an interval.' in verdicts
    assert verdicts.count("<strong>") == 1


def test_the_demo_ends_with_its_page():
    demo = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    assert demo.splitlines()[-1].endswith("lm-eval-bias report demo-results -o demo-results/report.html")


def _hundred(folder, tasks):
    paths = [
        write(folder / f"{number:03}.json", run_file(f"organisation-{number % 7}/model-{number}b", tasks, shift=number))
        for number in range(100)
    ]
    return check_closed(made([*paths, "--items", "0"], folder)), (folder / "out.html").stat().st_size


def test_a_hundred_models_are_readable(tmp_path):
    found, size = _hundred(tmp_path, ["occugender_explicit"])
    assert size < 1_000_000
    said = " ".join(" ".join(found.text).split())
    assert "occugender_explicit: leans against stereotypes (" in said  # counted, and model by model below
    assert "Models are ordered by their values." in said
    # every mark of the picture has a lane of its own, and every lane room for it
    page = (tmp_path / "out.html").read_text()
    strip = re.search(
        r'<svg class="strip" height="(\d+)"[^>]*aria-label="gap towards the stereotype">(.*?)</svg>', page, re.S
    )
    lanes = [float(y) for y in re.findall(r'<use [^>]* y="([\d.]+)"', strip[2])]
    assert len(set(lanes)) == len(lanes) == 100
    assert min(b - a for a, b in zip(lanes, lanes[1:], strict=False)) >= 5
    assert int(strip[1]) >= 500
    places = [float(x) for x in re.findall(r'<use [^>]* x="([\d.]+)%"', strip[2])]
    assert places == sorted(places)


@pytest.mark.slow
def test_a_page_of_a_hundred_models_and_every_benchmark_stays_small(tmp_path):
    _, size = _hundred(tmp_path, TASKS)
    assert size < 3_000_000
