"""StereoSet from the command line: runs, rescoring, the authors' files both ways, refusals, a completions server."""

import gzip
import json

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.tasks.stereoset import stereoset_items
from tests.support import servers, tiny

PREDICTIONS = ["export", "--to", "predictions"]


def run(folder, tasks, *more, model="bias-chance"):
    arguments = ["run", "--tasks", tasks, "--model", model, "--output_path", str(folder), "--log_samples"]
    return main([*arguments, *more])


def rescored(capsys, *arguments):
    capsys.readouterr()
    assert main(["rescore", *map(str, arguments), "--json"]) == 0
    found = {}
    for entry in json.loads(capsys.readouterr().out):
        found[entry["task"]] = {name: (s["value"], s["stderr"]) for name, s in entry["scores"].items()}
    return found


def refused(capsys, *arguments):
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("lm-eval-bias: error: ")
    return lines[-1]


def test_a_run_says_what_it_found(tmp_path, tiny_mirror, capsys):
    assert run(tmp_path, "stereoset_en,stereoset_de_inter_variants", "--table", "all") == 0
    out = capsys.readouterr().out
    for row in ("mc_icat_macro", "intra/ss", "inter/lms", "gender/icat", "profession/mc_ss_sd", "gen_pmi/ss"):
        assert row in out
    assert "All items: prefers a meaningful candidate in" in out
    assert "Between sentences:" in out
    assert "gen_full_ratio: prefers a meaningful candidate" in out


def test_an_exported_run_rescores_to_the_same_scores(tmp_path, tiny_mirror, capsys):
    assert run(tmp_path / "run", "stereoset_en", "--metadata", '{"by_test_and_type": true}') == 0
    results = json.loads(next((tmp_path / "run").rglob("results_*.json")).read_text())["results"]["stereoset_en"]
    for name in ("p.json", "p.json.gz"):
        assert main([*PREDICTIONS, str(tmp_path / "run"), "-o", str(tmp_path / name)]) == 0
        again = rescored(capsys, tmp_path / name, "--language", "en")["stereoset_en"]
        assert len(again) == 8 * (1 + 2 + 2 + 4)
        for score, (value, _) in again.items():
            printed = results[f"{score},none"]
            assert value == printed or (value is None and printed != printed), score  # noqa: PLR0124 (nan)
    written = json.loads((tmp_path / "p.json").read_text())
    assert list(written) == ["intrasentence", "intersentence"]
    released = [c["id"] for item in stereoset_items.read("en", "intra") for c in item["candidates"]]
    assert [entry["id"] for entry in written["intrasentence"]] == released
    assert set(written["intrasentence"][0]) == {"id", "score"}
    assert not list(tmp_path.glob("*.tmp"))


def test_two_runs_join_into_one_file(tmp_path, tiny_mirror, capsys):
    assert run(tmp_path / "runs" / "a", "stereoset_tr_intra") == 0
    assert run(tmp_path / "runs" / "b", "stereoset_tr_inter", "--model_args", "seed=4") == 0
    assert main([*PREDICTIONS, str(tmp_path / "runs"), "-o", str(tmp_path / "p.json")]) == 0
    assert set(rescored(capsys, tmp_path / "p.json", "--language", "tr")) == {"stereoset_tr"}
    assert main([*PREDICTIONS, str(tmp_path / "runs" / "a"), "-o", str(tmp_path / "intra.json")]) == 0
    assert set(rescored(capsys, tmp_path / "intra.json", "--language", "tr")) == {"stereoset_tr_intra"}


def test_predictions_inside_the_run_are_no_obstacle(tmp_path, tiny_mirror, capsys):
    assert run(tmp_path, "stereoset_tr_inter,stereoset_es_inter") == 0
    before = rescored(capsys, tmp_path)
    out = tmp_path / "p.json"
    for _ in range(2):
        assert main([*PREDICTIONS, str(tmp_path), "-o", str(out), "--language", "es"]) == 0
    assert rescored(capsys, tmp_path) == before
    capsys.readouterr()
    assert main(["rescore", str(tmp_path)]) == 0
    assert "skipped: " in capsys.readouterr().err
    assert "no samples of StereoSet in 'fr'" in refused(capsys, *PREDICTIONS, tmp_path, "-o", out, "--language", "fr")


def test_what_cannot_be_exported(tmp_path, tiny_mirror, capsys):
    out = tmp_path / "p.json"
    assert run(tmp_path / "part", "stereoset_en", "--limit", "2") == 0
    assert "items were not run" in refused(capsys, *PREDICTIONS, tmp_path / "part", "-o", out)
    assert run(tmp_path / "two", "stereoset_en_intra,stereoset_de_intra") == 0
    assert "several languages (de, en): choose one with --language" in refused(
        capsys, *PREDICTIONS, tmp_path / "two", "-o", out
    )
    assert run(tmp_path / "twice", "stereoset_en_intra,stereoset_en") == 0
    assert "scored by several runs" in refused(capsys, *PREDICTIONS, tmp_path / "twice", "-o", out)
    assert run(tmp_path / "variants", "stereoset_en_inter_variants") == 0
    assert "choose with --variant (gen, gen_full" in refused(capsys, *PREDICTIONS, tmp_path / "variants", "-o", out)
    assert run(tmp_path / "other", "occugender_debias_implicit_none", "--limit", "2") == 0
    assert "no samples of StereoSet" in refused(capsys, *PREDICTIONS, tmp_path / "other", "-o", out)
    assert not out.exists()
    assert main([*PREDICTIONS, str(tmp_path / "variants"), "-o", str(out), "--variant", "gen_pmi"]) == 0
    one = rescored(capsys, out, "--language", "en")["stereoset_en_inter"]
    all_five = rescored(capsys, tmp_path / "variants")["stereoset_en_inter_variants"]
    assert one["ss"] == all_five["gen_pmi/ss"]


@pytest.fixture
def saved(tmp_path, tiny_mirror):
    """Predictions for the small English data, to damage: all candidates of an item alike."""
    content = {
        name: [
            {"id": candidate["id"], "score": 0.5 + number / 100}
            for number, item in enumerate(stereoset_items.read("en", test))
            for candidate in item["candidates"]
        ]
        for test, name in stereoset_items.TEST_KEYS.items()
    }
    path = tmp_path / "p.json"

    def write(**changes):
        path.write_text(json.dumps({**content, **changes}))
        return path

    return content, write


def test_scores_of_items_that_the_data_lack_are_left_out_and_said(mirror, tmp_path, capsys):
    # as one of the authors' files: the German data lack three items that the other languages have
    ids = {
        language: [c["id"] for item in stereoset_items.read(language, "intra") for c in item["candidates"]]
        for language in ("de", "en")
    }
    scores = {name: (int(name[:6], 16) % 997) / 997 for name in ids["en"]}
    for language in ids:
        entries = [{"id": name, "score": scores[name]} for name in ids[language]]
        (tmp_path / f"{language}.json").write_text(json.dumps({"intrasentence": entries}))
    assert len(ids["en"]) - len(ids["de"]) == 9
    plain = rescored(capsys, tmp_path / "de.json", "--language", "de")
    more = tmp_path / "en.json"
    assert rescored(capsys, more, "--language", "de") == plain  # what is there counts, as if the rest weren't
    assert main(["rescore", str(more), "--language", "de", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["left_out"] == {"intrasentence": {"candidates": 9, "items": 3}}
    assert entry["documents"] == 2103
    assert main(["rescore", str(more), "--language", "de"]) == 0
    assert (
        "Left out: the scores of 9 candidates of 3 items (intrasentence), which the released de data don't have."
        in capsys.readouterr().out
    )
    content = json.loads(more.read_text())
    content["intrasentence"].append({"id": "0" * 32, "score": 0.5})  # a part of an item is damage
    more.write_text(json.dumps(content))
    assert "scores 10 candidates that the released de data don't have" in refused(
        capsys, "rescore", more, "--language", "de"
    )


def test_bad_predictions_are_refused_by_name(saved, capsys, tmp_path):
    content, write = saved
    intra = content["intrasentence"]
    path = write()
    assert "name it with --language (one of en, de" in refused(capsys, "rescore", path)
    assert "--language fx: unknown. Known: ca, de, en" in refused(capsys, "rescore", path, "--language", "fx")
    assert "candidates that the released de data don't have" in refused(capsys, "rescore", path, "--language", "de")
    write(intrasentence=intra[1:])
    assert f"no score for 1 of 12 candidates, {intra[0]['id']} among" in refused(
        capsys, "rescore", path, "--language", "en"
    )
    write(intrasentence=[*intra, intra[3]])
    assert f"candidate {intra[3]['id']} appears twice" in refused(capsys, "rescore", path, "--language", "en")
    for bad in (float("nan"), float("inf"), None, "high", 10**400):
        write(intrasentence=[{**intra[0], "score": bad}, *intra[1:]])
        line = refused(capsys, "rescore", path, "--language", "en")
        assert "intrasentence entry 0: " in line
        assert intra[0]["id"] in line
    write(intrasentence={})
    assert "intrasentence is not a list" in refused(capsys, "rescore", path, "--language", "en")
    write(intrasentence=[{"score": 1.0}])
    assert "entry 0: " in refused(capsys, "rescore", path, "--language", "en")
    whole = gzip.compress(write().read_bytes())
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    assert "truncated or damaged" in refused(capsys, "rescore", cut, "--language", "en")
    flipped = bytearray(whole)
    flipped[40] ^= 0xFF
    cut.write_bytes(flipped)
    assert "truncated or damaged" in refused(capsys, "rescore", cut, "--language", "en")
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + b'{"model": "x", ' + write().read_bytes()[1:])
    assert set(rescored(capsys, marked, "--language", "en")) == {"stereoset_en"}
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    assert "can be rescored" in refused(capsys, "rescore", other)


def test_ties_in_predictions_count_as_anti(saved, capsys):
    _, write = saved
    found = rescored(capsys, write(), "--language", "en")["stereoset_en"]
    assert found["ss"][0] == 0.0
    assert found["lms"][0] == 0.0


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "bert": tiny.bert(folder / "bert"),
        "headless": tiny.bert(folder / "headless", heads=False),
        "gpt2": tiny.gpt2(folder / "gpt2"),
        "llama": tiny.llama(folder / "llama"),
        "roberta": tiny.roberta(folder / "roberta"),
        "t5": tiny.t5(folder / "t5"),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("stereoset_en hf-mlm headless", "no next-sentence head"),
        ("stereoset_en hf-nsp gpt2", "between-sentence questions"),
        ("stereoset_en_inter hf-nsp gpt2", "has no nsp_config.json"),
        ("stereoset_en_inter_variants hf-mlm bert", "no likelihoods of whole sentences"),
        ("occugender hf-mlm bert", "answers the questions of StereoSet"),
        ("stereoset_en local-chat-completions none", "gives no log-likelihoods"),
        ("occugender local-chat-completions none", "gives no log-likelihoods"),
        ("stereoset_en hf gpt2 --apply_chat_template", "--apply_chat_template: stereoset_en scores plain sentences"),
        ("stereoset_en hf gpt2 --num_fewshot 2", "--num_fewshot: stereoset_en scores plain sentences"),
        ('stereoset_en hf gpt2 --metadata {"bos":"second"}', "must be one of first, all"),
        ('stereoset_en hf gpt2 --metadata {"boss":"all"}', "Did you mean bos?"),
        ('stereoset_en hf gpt2 --metadata {"masked":"pll_original"}', "is for masked language models"),
        ('stereoset_en_inter_variants hf gpt2 --metadata {"inter":"gen"}', "'inter' is unknown to these tasks"),
        ("stereoset_en_inter,stereoset_en_inter_variants hf t5", "an encoder-decoder model doesn't have"),
        ("stereoset_en hf bert", "a masked language model (BertForPreTraining)"),
        ("occugender hf roberta", "a masked language model (RobertaForMaskedLM)"),
        ("stereoset_en_intra,stereoset_en_inter hf-mlm roberta", "no next-sentence head"),
        ("stereoset_en_intra hf-mlm bert --batch_size auto", "--batch_size auto: hf-mlm needs a number"),
    ],
    ids=lambda value: value.replace("/", "")[:60] if " " in value else "",
)
def test_refusals(arguments, said, checkpoints, tiny_mirror, capsys):
    task, model, where, *more = arguments.split(" ")
    where = f"pretrained={checkpoints[where]}" if where in checkpoints else "model=x,base_url=http://127.0.0.1:9/v1"
    assert said in refused(capsys, "run", "--tasks", task, "--model", model, "--model_args", where, *more)


def test_a_text_longer_than_the_model_is_refused(checkpoints, tiny_mirror, capsys, monkeypatch):
    from tests.support import made_mirror

    long = [("The gardener " * 60 + "BLANK.", "gardener", "profession", ["a", "b", "c"])]
    assert made_mirror._STEREOSET["en"]["intra"]
    monkeypatch.setattr(
        stereoset_items,
        "read",
        lambda language, test: [
            {"id": "1", "test": "intra", "bias_type": "race", "target": "t", "term": "t", "context": long[0][0],
             "candidates": [{"id": w, "label": label, "word": w, "sentence": long[0][0].replace("BLANK", w)}
                            for w, label in zip("abc", stereoset_items.LABELS, strict=True)]}
        ],
    )  # fmt: skip
    for model in ("hf", "hf-mlm"):
        where = f"pretrained={checkpoints['bert' if model == 'hf-mlm' else 'gpt2']}"
        line = refused(capsys, "run", "--tasks", "stereoset_en_intra", "--model", model, "--model_args", where)
        assert "tokens; the model reads at most 96" in line


@pytest.mark.parametrize("model", ["hf", "hf-packed", "hf-mlm"])
def test_whole_runs_with_cache(model, checkpoints, tiny_mirror, tmp_path, capsys):
    where = f"pretrained={checkpoints['bert' if model == 'hf-mlm' else 'gpt2']}"
    more = ["--model_args", where, "--device", "cpu", "--batch_size", "8", "--use_cache", str(tmp_path / "cache")]
    assert run(tmp_path / "a", "stereoset_fr", *more, model=model) == 0
    assert run(tmp_path / "b", "stereoset_fr", *more, model=model) == 0
    first, second = rescored(capsys, tmp_path / "a"), rescored(capsys, tmp_path / "b")
    assert first == second
    results = json.loads(next((tmp_path / "a").rglob("results_*.json")).read_text())["results"]["stereoset_fr"]
    for score in ("lms", "ss", "icat", "inter/mc_icat_macro", "gender/ss"):
        assert first["stereoset_fr"][score][0] == results[f"{score},none"]


class _Completions(servers.Handler):
    """An OpenAI-like server: echoes prompts of token ids with their log-probabilities."""

    model = None

    def answer(self, asked):
        import torch

        assert asked["echo"]
        choices = []
        for index, ids in enumerate(asked["prompt"]):
            with torch.no_grad():
                logs = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
            own = [None] + [logs[i - 1, token].item() for i, token in enumerate(ids) if i] + [-1.0]
            top = [{"x": value} for value in own]
            choices.append({"index": index, "logprobs": {"token_logprobs": own, "top_logprobs": top}})
        self.send({"choices": choices})


@pytest.mark.parametrize("name", ["gpt2", "llama"])  # llama's tokenizer adds a start token, the server's client doesn't
def test_a_completions_server_gives_the_same_scores(name, checkpoints, tiny_mirror, tmp_path, capsys):
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    import transformers

    _Completions.model = transformers.AutoModelForCausalLM.from_pretrained(checkpoints[name]).eval()
    server = servers.serve(_Completions)
    try:
        address = f"http://127.0.0.1:{server.server_port}/v1/completions"
        remote = f"model=tiny,base_url={address},tokenizer={checkpoints[name]},tokenizer_backend=huggingface"
        remote += ",num_concurrent=1,max_retries=1"
        tasks = "stereoset_en,stereoset_tr_inter_variants"
        assert run(tmp_path / "remote", tasks, "--model_args", remote, model="local-completions") == 0
    finally:
        server.shutdown()
    where = f"pretrained={checkpoints[name]},dtype=float32"
    assert run(tmp_path / "local", tasks, "--model_args", where, "--device", "cpu", model="hf") == 0
    for path in (tmp_path / "local").rglob("samples_*.jsonl"):
        (other,) = (tmp_path / "remote").rglob(path.name.rsplit("_", 1)[0] + "_*.jsonl")
        pairs = list(zip(path.open(), other.open(), strict=True))
        assert pairs
        for ours, theirs in pairs:
            a, b = (json.loads(line)["filtered_resps"] for line in (ours, theirs))
            for left, right in zip(a, b, strict=True):
                assert [float(x) for x in left] == pytest.approx([float(x) for x in right], rel=1e-4)
    local, remote_scores = rescored(capsys, tmp_path / "local"), rescored(capsys, tmp_path / "remote")
    assert local["stereoset_en"].keys() == remote_scores["stereoset_en"].keys()
