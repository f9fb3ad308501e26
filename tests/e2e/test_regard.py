"""Whole regard runs: every text labelled in the log, scored again, classified again; and what goes wrong."""

import csv
import itertools
import json
import math
import re

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.runs import run_discovery, run_file
from tests.support import servers, tiny
from tests.support.fuzzing import refused
from tests.support.run_scores import assert_rescored_equals, numbers, rescored, results_of

RUN = ["run", "--model", "bias-chance", "--log_samples", "--tasks"]


@pytest.fixture
def run_folder(tmp_path, tiny_mirror):
    out = tmp_path / "run"
    assert main([*RUN, "regard_de,regard_en", "--metadata", '{"repeats": 12}', "--output_path", str(out)]) == 0
    return out


def log_of(folder, task="regard_de"):
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_log_holds_every_text_with_its_label_and_probabilities(run_folder):
    samples = log_of(run_folder)
    assert len(samples) == 20
    dropped = 0
    for sample in samples:
        (texts,) = sample["filtered_resps"]
        assert len(texts) == 12 == len(sample["resps"][0])
        for text, label, *probabilities in texts:
            assert text.startswith(sample["doc"]["prompt"])
            if label.startswith("dropped"):
                dropped += 1
                assert not probabilities
            else:
                values = [float(p) for p in probabilities]
                assert sum(values) == pytest.approx(1, abs=1e-9)
                assert REGARDS[values.index(max(values))] == label
    assert dropped > 0
    share = numbers(results_of(run_folder))["regard_de"]["dropped"]
    assert share == pytest.approx(dropped / 240)


def test_the_facets_come_with_the_regard_and_predict_only_is_rescored_alike(tmp_path, tiny_mirror, run_folder, capsys):
    found = results_of(run_folder)["configs"]["regard_de"]
    assert "weak" in found["metadata"]["classifier_used"]["warning"]
    assert "light classifier" in next(m.get("note", "") for m in found["metric_list"] if m["metric"] == "all/chi2")
    assert all("weak" in sample["doc"]["classifier"]["warning"] for sample in log_of(run_folder))
    capsys.readouterr()
    assert main(["rescore", str(run_folder)]) == 0
    out = capsys.readouterr().out
    assert "caregiving" in out.partition("chi-square")[0]  # the keywords come before the test of regard
    assert "Warning: regard labels come from the light classifier" in out
    blind = tmp_path / "blind"
    arguments = ["--metadata", '{"repeats": 12}', "--predict_only", "--output_path", str(blind)]
    assert main([*RUN, "regard_de,regard_en", *arguments]) == 0
    assert_rescored_equals(rescored(capsys, blind), numbers(results_of(run_folder)))


def test_classified_again(run_folder, tmp_path, capsys):
    same = rescored(capsys, run_folder, "--classifier", "light")
    assert_rescored_equals(same, numbers(results_of(run_folder)))
    folder = tiny.classification(tmp_path / "hub", ["other", "neutral", "positive", "negative"])
    for task, other in rescored(capsys, run_folder, "--classifier", f"hub:{folder}").items():
        assert other["classifier_used"]["name"] == f"hub:{folder}"
        scores = {name: score["value"] for name, score in other["scores"].items()}
        for name in ("dropped", "caregiving/female", "distinct"):
            assert scores[name] == same[task]["scores"][name]["value"]
        assert sum(scores[f"all/female/{label}"] for label in (*REGARDS, "other")) == pytest.approx(1)


def write_texts(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def labelled(counts, **more):
    """So many texts about women and men per regard, in the form of the authors' labelled set."""
    subjects = {"FEMALE_SINGLE": "Die Frau", "MALE_SINGLE": "Der Mann"}
    return [
        {"gender": gender, "text": f"{subjects[gender]} galt als Fall {regard}-{n}.", "regard": regard, **more}
        for gender, row in counts.items()
        for regard, size in enumerate(row)
        for n in range(size)
    ]


COUNTS = {"FEMALE_SINGLE": (154, 153, 193), "MALE_SINGLE": (173, 195, 132)}  # GerPT-2, respect contexts


def test_labelled_texts_as_jsonl_and_as_csv(tmp_path, capsys):
    rows = labelled(COUNTS)
    (entry,) = rescored(capsys, write_texts(tmp_path / "texts.jsonl", rows)).values()
    assert round(entry["scores"]["respect/chi2"]["value"], 3) == 17.622
    assert entry["scores"]["occupation/chi2"]["value"] is None
    assert entry["scores"]["occupation/chi2"]["reason"]
    with (tmp_path / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", "Text", "Gender", "Regard"])
        writer.writerows([i, row["text"], row["gender"], row["regard"]] for i, row in enumerate(rows))
    (again,) = rescored(capsys, tmp_path / "texts.csv").values()
    assert again["scores"] == entry["scores"]
    assert again["documents"] == 1000


def test_other_is_the_fourth_class(tmp_path, capsys):
    rows = labelled({"FEMALE_SINGLE": (10, 10, 20, 10), "MALE_SINGLE": (20, 10, 10)})
    (entry,) = rescored(capsys, write_texts(tmp_path / "texts.jsonl", rows)).values()
    found = {name: score["value"] for name, score in entry["scores"].items()}
    assert (found["all/n"], found["all/female/other"], found["all/female/positive"]) == (80, 0.2, 0.4)


TEXT = {"text": "Die Frau galt als x.", "gender": "F", "regard": 1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**TEXT, "regard": 7}, "line 2: regard 7"),
        ({**TEXT, "gender": "X"}, "line 2: gender 'X'"),
        ({**TEXT, "gender": None}, "line 2: gender None"),
        ({**TEXT, "text": " "}, "line 2: no text"),
        ({**TEXT, "regard": ""}, "--classifier"),
        ({**TEXT, "text": "Ein Hund."}, "--language"),
        (3, "line 2: truncated or damaged JSONL"),
    ],
)
def test_labelled_texts_that_are_none(row, message, tmp_path):
    assert message in refused(tmp_path, "rescore", str(write_texts(tmp_path / "texts.jsonl", [TEXT, row])))


def test_named_classifier_needs_no_corpus(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # and no mirror: the corpus cannot be had
    folder = tiny.classification(tmp_path / "hub", ["negative", "neutral", "positive"])
    metadata = json.dumps({"repeats": 2, "classifier": f"hub:{folder}"})
    out = tmp_path / "out"
    assert main([*RUN, "regard_de", "--metadata", metadata, "--output_path", str(out)]) == 0
    assert results_of(out)["configs"]["regard_de"]["metadata"]["classifier_used"]["name"] == f"hub:{folder}"
    assert main([*RUN, "regard_de", "--metadata", '{"classifier": "light"}', "--output_path", str(out)]) == 2


def test_classify_texts(tmp_path, tiny_mirror, capsys):
    plain = tmp_path / "texts.txt"
    plain.write_text("Die Frau galt als klug.\n\nDer Mann galt als gemein.\n", encoding="utf-8")
    assert main(["regard", "classify", str(plain)]) == 0
    printed = capsys.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [(row["label"], row["regard"]) for row in rows] == [("positive", 2), ("negative", 0)]
    assert "weak" in printed.err
    table, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    lines = ("id,Satz,gender,regard", "1,Die Frau galt als klug.,F,0", "2,Der Mann galt als gemein.,M,0")
    table.write_text("\n".join(lines), encoding="utf-8")
    assert main(["regard", "classify", str(table), "--column", "satz", "-o", str(out)]) == 0
    again = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["label"], row["regard_before"]) for row in again] == [
        ("1", "positive", "0"), ("2", "negative", "0")
    ]  # fmt: skip
    assert set(rows[0]) <= set(again[0])
    # what classify wrote can be rescored, and still says how weak its labels are
    capsys.readouterr()
    assert main(["rescore", str(out)]) == 0
    assert "Warning: regard labels come from the light classifier" in capsys.readouterr().out
    (tmp_path / "unknown.txt").write_text("Hund.\n")
    assert main(["regard", "classify", str(tmp_path / "unknown.txt")]) == 2
    assert main(["regard", "classify", str(tmp_path / "unknown.txt"), "--language", "de"]) == 0


def test_same_seed_same_texts(tmp_path, tiny_mirror):
    where = tiny.gpt2(tmp_path / "model")
    arguments = ["run", "--tasks", "regard_en", "--model", "hf", "--model_args", f"pretrained={where}", "--limit", "2"]
    arguments += ["--device", "cpu", "--batch_size", "6", "--log_samples"]
    arguments += ["--metadata", '{"repeats": 3, "classifier": "light"}']
    logs = []
    for name, more in (("a", []), ("b", []), ("c", ["--seed", "7"])):
        assert main([*arguments, *more, "--output_path", str(tmp_path / name)]) == 0
        logs.append([sample["resps"] for sample in log_of(tmp_path / name, "regard_en")])
    assert logs[0] == logs[1] != logs[2]
    assert len({text for sample in logs[0] for text in sample[0]}) == 6


class _Sampler(servers.Handler):
    """An OpenAI-like server: the same seed, the same text; another one each time without."""

    turn = itertools.count()
    asked = 0

    def answer(self, asked):
        assert (asked["temperature"], asked["top_p"], asked["top_k"], asked["max_tokens"]) == (0.7, 0.92, 0, 32)
        prompts = [asked["prompt"]] if isinstance(asked["prompt"], str) else asked["prompt"]
        draws = [next(self.turn) if asked["seed"] is None else asked["seed"] for _ in prompts]
        type(self).asked += len(draws)
        self.send({"choices": [{"index": i, "text": f" case {n}."} for i, n in enumerate(draws)]})


def test_samples_from_a_server(tmp_path, tiny_mirror, capsys):
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    pytest.importorskip("aiohttp", reason="needs lm-eval[api]")
    server = servers.serve(_Sampler)
    remote = f"model=tiny,base_url=http://127.0.0.1:{server.server_port}/v1/completions,tokenizer=none"
    remote += ",tokenizer_backend=none,tokenized_requests=False,max_retries=1,num_concurrent="
    arguments = ["run", "--tasks", "regard_en", "--model", "local-completions", "--log_samples", "--use_cache"]
    arguments += [str(tmp_path / "cache"), "--metadata", '{"repeats": 3, "classifier": "light"}']
    given = {"a": (1, []), "b": (1, []), "none": (4, ["--gen_kwargs", '{"seed": null}']),
             "five": (4, ["--gen_kwargs", '{"seed": 5}'])}  # fmt: skip
    texts, asked = {}, {}
    try:
        for name, (concurrent, more) in given.items():
            _Sampler.asked = 0
            own = ["--model_args", f"{remote}{concurrent}", *more, "--output_path", str(tmp_path / name)]
            assert main([*arguments, *own]) == 0
            texts[name] = [text for sample in log_of(tmp_path / name, "regard_en") for text in sample["resps"][0]]
            asked[name] = _Sampler.asked
    finally:
        server.shutdown()
    err = capsys.readouterr().err
    assert "Sampling texts" in err
    assert "Requesting API" not in err  # a bar for every sample
    assert all(len(set(own)) == 60 for own in texts.values())  # 20 prompts, each sample another text
    assert texts["a"] == texts["b"]
    assert not set(texts["a"]) & set(texts["five"])
    assert asked == {"a": 60, "b": 0, "none": 60, "five": 60}
    assert not math.isnan(numbers(results_of(tmp_path / "none"))["regard_en"]["dropped"])


def test_an_api_that_takes_no_seed_is_refused(tiny_mirror, capsys):
    arguments = ["run", "--tasks", "regard_en", "--model", "anthropic-chat-completions", "--model_args", "model=x"]
    arguments.append("--apply_chat_template")
    assert main([*arguments, "--metadata", '{"classifier": "light"}']) == 2
    assert "sends the same seed each time" in capsys.readouterr().err


def test_both_intervals_travel_by_name(run_folder, tmp_path, capsys):
    (path,) = run_folder.rglob("results_*.json")
    run = run_discovery.read([str(path)])[0][0]
    again = run_file.read(tmp_path / "run.json", json.loads(json.dumps(run_file.as_data(run))))
    for task, entry in rescored(capsys, run_folder).items():
        for name in ("all/female/negative", "all/negative_gap", "caregiving/gap", "dropped", "all/cramers_v"):
            score = entry["scores"][name]
            assert (score["interval"] is None) == (name == "all/cramers_v")
            for value in (run.tasks[task].scores[name], again.tasks[task].scores[name]):
                assert value.fixed_interval == pytest.approx(score["fixed_interval"], abs=1e-12)
                assert value.interval == (score["interval"] and pytest.approx(score["interval"], abs=1e-12))
    for form, text in (("html", "items as given"), ("csv", "fixed_interval_low")):
        assert main(["report", str(path), "--format", form, "-o", str(tmp_path / f"r.{form}")]) == 0
        assert text in (tmp_path / f"r.{form}").read_text(encoding="utf-8")


def test_corrected_by_the_classifiers_own_test_rows_or_by_labelled_texts(run_folder, tmp_path, capsys):
    (log,) = run_folder.rglob("samples_regard_de_*.jsonl")
    own = rescored(capsys, log)["regard_de"]
    source = own["classifier_used"]["confusion"]["source"]
    assert "test sentences" in source
    texts = [text for sample in log_of(run_folder) for text in sample["filtered_resps"][0]]
    kept = [(text, label) for text, label, *more in texts if more]
    labels = {"negative": 0, "neutral": 1, "positive": 2}
    genders = {"Die Frau": "F", "Der Mann": "M"}
    # people agree with every label but every fifth, which they call neutral
    rows = [{"text": text, "gender": genders[text[:8]], "regard": 1 if n % 5 == 0 else labels[label]}
            for n, (text, label) in enumerate(dict(kept).items())]  # fmt: skip
    rows += [{"text": "Die Frau galt als klug.", "gender": "F", "regard": 2}]  # of none of the prompts' texts
    path = write_texts(tmp_path / "people.jsonl", rows)
    by_people = rescored(capsys, log, "--regard_labels", path)["regard_de"]
    confusion = by_people["classifier_used"]["confusion"]
    assert confusion["source"] == f"{len(rows)} labelled texts (people.jsonl)"
    assert sum(map(sum, confusion["counts"]["female"])) == sum(row["gender"] == "F" for row in rows)
    assert [confusion["counts"]["male"][k][k2] for k, k2 in ((0, 1), (0, 2), (2, 0), (2, 1))] == [0, 0, 0, 0]
    for name, score in own["scores"].items():
        if not name.endswith("_corrected"):
            assert by_people["scores"][name] == score, name
    corrected = by_people["scores"]["all/negative_gap_corrected"]
    assert corrected["value"] is not None or corrected["reason"]
    assert main(["rescore", str(run_folder), "--regard_labels", str(path)]) == 2
    assert "begins with a subject of language 'de', not 'en'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regard": ""}, "regard '' is not a class"),
        ({"regard": 3}, "regard 'other' is not a class"),
        ({"regard": 9}, "regard 9"),
        ({"classifier": "light"}, "is to be corrected"),
        ({}, "label them again with --classifier"),  # a classifier that is another now
    ],
)
def test_labels_that_correct_nothing(change, message, run_folder, tmp_path):
    (log,) = run_folder.rglob("samples_regard_de_*.jsonl")
    if not change:
        content = log.read_text(encoding="utf-8")
        log = tmp_path / log.name  # without the results, whose hashes it no longer meets
        log.write_text(re.sub(r"TF-IDF, \d+ sentences", "TF-IDF, 7 sentences", content), encoding="utf-8")
    path = write_texts(tmp_path / "people.jsonl", [{**TEXT, **change}])
    assert message in refused(tmp_path, "rescore", str(log), "--regard_labels", str(path))
