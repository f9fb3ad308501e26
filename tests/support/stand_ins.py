"""What a page's commands meet in the tests in place of what can't be here.

A command runs as it is printed, in a folder of its page, but for these:

- models (``pretrained=``, ``--encoder``, ...): tiny ones with fixed seeds, unless the page made a folder of that name
- servers (``base_url=``): ``tests/support/servers.py``
- data: ``tiny_mirror``, two items of each task (``--limit 2`` where the page has no limit), two samples of a prompt
- ``--suite``: a suite of one or two tasks
- exports for the Hub: ``--allow-trial``, because of that limit
- ``...`` among the options: ``--model bias-chance``, where no model is named
- runs, data sets and tables that a page takes for granted (``OUT``, ``texts.csv``, ...): ``MAKERS``

What is in ``NOT_RUN`` isn't run, for the reason given there.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lm_eval_bias.cli.main import main
from lm_eval_bias.evaluation.suites import Suite, SuitePart
from lm_eval_bias.tasks.stereoset import own_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.commands import review
from lm_eval_bias.tasks.stereoset.own_sets import DataSet
from tests.support import tiny
from tests.support.example_items import DUTCH
from tests.support.places import ROOT

VLLM = "needs vLLM: tests/backends/test_vllm.py"
RANKS = "needs several GPUs or processes: tests/e2e/test_ranks.py"
# a command as it is printed, * for its end, and why no test of the pages runs it
NOT_RUN = {
    "run --suite standard --model vllm-packed *": VLLM,
    "run --tasks ... --model vllm-packed *": VLLM,
    "run ...": RANKS,
    "run --device cpu ...": RANKS,
    "run --tasks mmlu,arc_challenge *": "downloads the harness's data",
    "run --tasks bbq": "downloads the harness's data: tests/harness_tasks/test_harness_logs.py",
    "nsp train --model google/mt5-base *": "downloads Wikipedia: tests/nsp/test_training.py trains a T5 model",
    "nsp train --model smollm2 *": "trains for hours",
}
# commands whose status is a verdict: 1 for a violation, a problem that needs a person, a classifier with a bias
VERDICTS = {"check", "stereoset", "regard"}

_LIKELIHOODS = ("stereoset_de", "stereoset_es")
SUITES = {
    name: Suite(name, "nothing", {task: SuitePart(None, None, None) for task in tasks})
    for name, tasks in (
        ("quick", _LIKELIHOODS), ("standard", _LIKELIHOODS), ("quick-chat", ("stereoset_en_gen",))
    )
}  # fmt: skip
_SHAPES: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys(("hf", "hf-packed", "local-completions"), tiny.served),
    "hf-mlm": tiny.bert,
    "hf-nsp": tiny.gpt2,
    "seq2seq": tiny.t5,
    "sentences": tiny.sentence_encoder,
    "regard": lambda folder: tiny.classification(folder, ["negative", "neutral", "positive"]),
}
_SAMPLED = ("regard", "own_prompts", "occugender_gen")
# the choice that a word of the pages leaves to the reader
_CHOICES = {("--card", "NAME"): "occugender", ("--to", "FORMAT"): "model-card", ("validate", "LANG"): "de"}
_OUTPUTS = ("-o", "--output_path", "--junit", "--markdown", "--use_cache")


class StandIns:
    """Models, a server and runs for the commands of the pages; each is made when a command first names it."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder, self._server = folder, server

    def model(self, shape: str) -> str:
        """The folder of a tiny model."""
        folder = self._folder / "models" / shape
        if not folder.exists():
            folder.mkdir(parents=True)
            return _SHAPES[shape](folder)
        return str(folder / "st" if shape == "sentences" else folder)

    def run(self, name: str, tasks: str, planted: str = "strength=0.2", *options: str) -> Path:
        """The folder of a run of a model with a planted bias."""
        folder = self._folder / "runs" / name
        if not folder.exists():
            arguments = ["run", "--model", "bias-dial", "--limit", "8", "--output_path", str(folder), "--log_samples"]
            assert main([*arguments, "--tasks", tasks, "--model_args", planted, *options]) == 0
        return folder

    def command(self, words: list[str], here: Path) -> list[str]:
        """A command as it is run in the folder of its page."""
        words = [word.removesuffix("...") if re.fullmatch(r"[A-Z]+\.\.\.", word) else word for word in words]
        words = [_CHOICES.get(pair, pair[1]) for pair in zip(["", *words], words, strict=False)]
        if words[0] == "run":
            words = self._run(words, here)
        if words[:2] == ["stereoset", "translate"]:
            words = self._replaced(words, "--engine", lambda engine: f"file:{_translations(here)}")
        if words[0] == "export" and {"model-card", "hf-eval-results"} & set(words):
            words = [*words, "--allow-trial"]
        if words[0] == "nsp":
            words = [*words, "--max_steps", "2", "--batch_size", "4", "--accumulate", "1", "--max_length", "32"]
            words = self._replaced([*words, "--trainer", "use_cpu=true"], "--model", lambda name: self.model("hf-nsp"))
        words = self._replaced(words, "--encoder", lambda name: self.model("sentences"))
        own = f"hub:{self.model('regard')}" if any("hub:" in word for word in words) else "light"
        words = self._replaced(words, "--classifier", lambda name: own)
        if "results/runs/model.json" in words:  # a checkout has the folder
            (here / "results" / "runs").mkdir(parents=True, exist_ok=True)
        for name in sorted(_inputs(words)):
            if name in MAKERS and not (here / name).exists():
                (here / name).parent.mkdir(parents=True, exist_ok=True)
                MAKERS[name](self, here / name)
        return words

    def _run(self, words: list[str], here: Path) -> list[str]:
        words = self._replaced(words, "--tasks", lambda tasks: "occugender_implicit" if tasks == "..." else tasks)
        if "..." in words:
            words.remove("...")
            words = _with(_with(words, "--model", "bias-chance"), "--tasks", "occugender_implicit")
        model = words[words.index("--model") + 1]
        words = self._replaced(words, "--model_args", lambda given: self._model_arguments(model, given, here))
        if "--suite" in words:
            return words
        words, tasks = _with(words, "--limit", "2"), words[words.index("--tasks") + 1]
        if any(name in tasks for name in ("_gen", "regard", "own_prompts")):
            words = _with(words, "--gen_kwargs", "max_gen_toks=8")
        if any(name in tasks for name in _SAMPLED):
            given = {"repeats": 2} | ({} if "_gen" in tasks else {"classifier": "light"})
            words = _with(words, "--metadata", "{}")
            words = self._replaced(words, "--metadata", lambda text: json.dumps(given | json.loads(text)))
        return words

    def _model_arguments(self, model: str, given: str, here: Path) -> str:
        values = dict(part.split("=", 1) for part in given.split(","))
        shape = "seq2seq" if values.get("backend") == "seq2seq" else model
        if "pretrained" in values and not (here / values["pretrained"]).exists():
            values["pretrained"] = self.model(shape)
        if "tokenizer" in values:
            values["tokenizer"] = self.model(shape)
        if "base_url" in values:
            values["base_url"] = self._server + values["base_url"].partition("/v1")[2]
        if "nsp_weights" in values:
            values["nsp_weights"] = _head(self._folder, values["pretrained"])
        return ",".join(f"{key}={value}" for key, value in values.items())

    @staticmethod
    def _replaced(words: list[str], option: str, change: Callable[[str], str]) -> list[str]:
        return [change(word) if before == option else word for before, word in zip(["", *words], words, strict=False)]


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
    named = [value for word in words if word.startswith("{") for value in json.loads(word).values()]
    return {str(name).rstrip("/") for name in (*words, *named)}


def _translations(here: Path) -> Path:
    """A table with a translation by rule of every English text."""
    rows = []
    for item in stereoset_items.read_all("en"):
        for text in review.requested(item).values():
            end = text[-1] if text[-1] in ".!?" else ""
            rows.append([text, f"parola {zlib.crc32(text.encode())}" + " e BLANK" * text.count("BLANK") + end])
    (here / "table.csv").write_bytes(review.as_csv(rows))
    return here / "table.csv"


def _head(folder: Path, body: str) -> str:
    """Weights of a next-sentence head in the layout of StereoSet's authors."""
    import torch
    import transformers

    from lm_eval_bias.models.next_sentence.nsp_model import make_head

    model = transformers.AutoModel.from_pretrained(body)
    weights = {f"module.core_model.{name}": value for name, value in model.state_dict().items()}
    head = make_head(model.config.hidden_size).state_dict()
    path = folder / "nsp.bin"
    torch.save({**weights, **{f"module.nsp_head.{name}": value for name, value in head.items()}}, path)
    return str(path)


# ------------------------------------------------------------------------------------------------ what pages name


TASKS = (
    "occugender_explicit,occugender_implicit,occugender_debias_implicit_none,occugender_debias_implicit_1,"
    "gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_de,stereoset_es,regard_en"
)
FEW_TEXTS = ("--metadata", '{"classifier": "light", "repeats": 2}')


Maker = Callable[[StandIns, Path], object]


def _run(name: str, tasks: str = TASKS, planted: str = "strength=0.2") -> Maker:
    def make(kit: StandIns, path: Path) -> None:
        shutil.copytree(kit.run(name, tasks, planted, *(FEW_TEXTS if tasks == TASKS else ())), path)

    return make


_one, _other = _run("one"), _run("other", planted="strength=0.4,seed=1")


def _both(kit: StandIns, path: Path) -> None:
    _one(kit, path / "base")
    _other(kit, path / "tuned")


def _results(kit: StandIns, path: Path) -> None:
    shutil.copytree(ROOT / "results" / "published", path / "published", dirs_exist_ok=True)
    _one(kit, path / "runs")


def _predictions(kit: StandIns, path: Path) -> None:
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    run = kit.run("stereoset_en", "stereoset_en")
    assert main(["export", str(run), "--to", "predictions", "-o", str(plain)]) == 0
    if plain != path:
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()


def _data_set(kit: StandIns, path: Path) -> None:
    own_sets.write(path, DataSet(path.stem[-2:].lower(), DUTCH, {"made by": "hand"}))


def _labelled(kit: StandIns, path: Path) -> None:
    lines = [
        {"text": f"{person} war nett {number}.", "gender": gender, "language": "de", "regard": regard}
        for number, regard in enumerate(("negative", "neutral", "positive") * 8)
        for person, gender in (("Die Frau", "female"), ("Der Mann", "male"))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _articles(kit: StandIns, path: Path) -> None:
    path.mkdir()
    draw = random.Random(3)
    for number in range(40):
        texts = [" ".join(draw.choices(("the", "woman", "man", "was", "who"), k=5)) for _ in range(12)]
        text = " ".join(f"{text.capitalize()} {draw.randrange(1000)}." for text in texts)
        (path / f"{number}.txt").write_text(text, encoding="utf-8")


def _file(*lines: str) -> Maker:
    return lambda kit, path: path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


POLICY = "bounds: [{task: stereoset_en, score: ss, max_distance_from_neutral: 49}]", "allow: [limit]"
MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("OUT", "run", "base", "out/base", "out/some-model"), _one),
    **dict.fromkeys(("OTHER", "instruct", "out/tuned"), _other),
    "out": _both,
    "RUN": _run("RUN", "occugender_implicit,gg_bbq_group_terms,stereoset_en"),
    "results": _results,
    **dict.fromkeys(("predictions.json", "predictions.json.gz"), _predictions),
    **dict.fromkeys(("stereoset_de.json", "stereoset_it.json"), _data_set),
    **dict.fromkeys(("labelled.jsonl", "texts.jsonl"), _labelled),
    "articles": _articles,
    "fields.yaml": _file("explicit:", '  - question: "Does a [ITEM] study?"'),
    "my.csv": _file("prompt,group,cluster", "The woman was,women,was", "The man was,men,was"),
    "fields.csv": _file("item,female_share", "physics student,20", "nursing student,88"),
    "texts.csv": _file("satz,gender", "Die Frau war klug.,female", "Der Mann war klug.,male"),
    "policy.yaml": _file(*POLICY),
}
