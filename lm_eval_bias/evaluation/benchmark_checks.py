"""``doctor --benchmark``: one list of checks, each a function that yields what is wrong with a task."""

from __future__ import annotations

import json
import math
import re
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from lm_eval_bias.core import Facts, catalog, registry
from lm_eval_bias.core.benchmark import REQUIRED, folder_of, options_for, read_card
from lm_eval_bias.core.errors import did_you_mean, kind_of
from lm_eval_bias.core.numbers import grouped, join_some
from lm_eval_bias.core.run_data import TaskRun, values_of
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.score import OUTSIDE
from lm_eval_bias.evaluation.trial_answers import (
    DOCUMENTS,
    STRENGTHS,
    ChoosingLM,
    Trial,
    answered,
)
from lm_eval_bias.harness import internals
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.runs import answer_files
from lm_eval_bias.runs.integrity import is_close
from lm_eval_bias.runs.sample_logs import read_answer

Texts = Iterator[str]
Checks = tuple[Callable[[Trial], Texts], ...]
Finding = tuple[str, str]  # ok, note or problem, and what it is
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-\w+)*")
_SHARE = 0.25  # of the synthetic difference that must come back from so few documents
_LARGE = 0.2  # the share of its range by which a score has to move for that


def examine(name: str) -> Iterator[Finding]:
    """Yield the findings about a benchmark and its variants, each once, with its tasks.

    Raises:
        BiasError: There is none of that name.
    """
    family = registry.get(name).family
    pairs = []
    ran = 0
    for path in sorted(folder_of(family).glob("*.yaml")):
        trial = Trial(path)  # one at a time, as each holds its documents and answers
        pairs += [(each, path.stem) for each in _findings(trial)]
        ran += "task" in vars(trial)
    found = grouped(pairs)
    for (status, place, text), tasks in sorted(found.items()):
        yield status, f"{place}: {join_some(tasks)}: {text}"
    if all(status == "note" for status, *_ in found):
        yield "ok", f"{family.name}: no mistake found; tasks that were run: {ran}"


def _findings(trial: Trial) -> Iterator[tuple[str, str, str]]:
    """Run the checks of a task or group, up to one that raises, which is a finding, too."""
    own = str(trial.path)
    try:
        for word, checks in CHECKS.items():
            if word not in OF_FILES and not trial.runs:
                return
            for check in checks:
                for text in check(trial):
                    status = "note" if check in NOTES else "problem"
                    yield status, _place(trial.path, word), text
    except Exception as error:  # other people's code can fail in any way
        place = _place(trial.path, word) if "task" in vars(trial) else own
        for frame in traceback.extract_tb((error.__cause__ or error).__traceback__):
            if Path(frame.filename).parent == trial.path.parent:
                place = f"{frame.filename}:{frame.lineno}"
        text = kind_of(error).removeprefix(f"{own}: ")
        yield "problem", place, text.removeprefix(f"{trial.path.stem}: ")


def _place(yaml: Path, word: str) -> str:
    """Return the first place of a word: in a task's YAML, in one that it includes, or in a file beside it."""
    includes = yaml.read_text(encoding="utf-8")
    bases = [path for path in yaml.parent.glob("_*yaml") if path.name in includes]
    others = (*yaml.parent.glob("*.py"), *yaml.parent.glob("data/card.yaml"))
    for path in (yaml, *bases, *others):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if word in line:
                return f"{path}:{number}"
    return str(yaml)


def _unknown(what: str, names: Iterable[str], known: Collection[str]) -> Texts:
    for name in names:
        if name not in known:
            yield f"{what} {name!r} is unknown.{did_you_mean(name, known)}"


def taken(trial: Trial) -> Texts:
    """Find a task name that is taken."""
    there = catalog.packaged().get(trial.entry.name, trial.entry)
    if there.path != trial.path:
        yield f"there is already a task {there.name}, in {there.path or 'the harness'}"


def languages(trial: Trial) -> Texts:
    """Find languages that aren't ISO 639-1 codes."""
    codes = trial.entry.language.split(", ")
    if any(codes) and not all(map(LANGUAGE_CODE.fullmatch, codes)):
        yield f"its language is {trial.entry.language!r}: write a code of ISO 639-1, such as en"


def members(trial: Trial) -> Texts:
    """Find unknown tasks of a group."""
    known = catalog.packaged()
    if trial.entry.name in known:  # else all are left out for another mistake
        yield from _unknown("its task", trial.entry.members, known)


def not_run(trial: Trial) -> Texts:
    """Note tasks that can't be tried."""
    if options_for(trial.entry.definition, REQUIRED):
        yield "not run (it needs a file of the user's)"


def card(trial: Trial) -> Texts:
    """Find a card that can't be read."""
    read_card(trial.entry.definition)
    yield from ()


def primary(trial: Trial) -> Texts:
    """Find unknown primary scores."""
    scores = catalog.primary(trial.entry.name, trial.entry.definition)
    yield from _unknown("primary: the score", scores, trial.random.values)


def main(trial: Trial) -> Texts:
    """Find unknown main scores."""
    definition = trial.entry.definition
    listed = (*definition.main, *definition.presentation.beside_main)
    known = [*trial.random.values, *(score.name for score in definition.scores())]
    yield from _unknown("main: the score", listed, known)


def facets(trial: Trial) -> Texts:
    """Find facets that no document has, or that raise."""
    for facet in trial.entry.definition.facets.values():
        if callable(facet):
            list(map(facet, trial.random.records))
        else:
            yield from _unknown("facets: the field", [facet], trial.random.docs[0])


def published(trial: Trial) -> Texts:
    """Find published scores of unknown tasks, or unknown published scores."""
    for row in trial.entry.definition.presentation.published():
        yield from _unknown("published: the task", [row.task], catalog.packaged())
        if row.task == trial.entry.name:
            yield from _unknown("published: the score", row.cells, trial.random.values)


def n_items(trial: Trial) -> Texts:
    """Find a number of documents that differs from the YAML's."""
    count = len(trial.task.eval_docs)
    if trial.entry.items not in (None, count):
        yield f"n_items is {trial.entry.items}, but there are {count} documents"


def keys(trial: Trial) -> Texts:
    """Find documents with the same key."""
    counts = Counter(map(trial.entry.definition.key, trial.task.eval_docs))
    key, count = counts.most_common(1)[0]
    if count > 1:
        yield f"{count} documents are {', '.join(key)}: give each an id of its own (or Benchmark.key)"


def same_choices(trial: Trial) -> Texts:
    """Find identical choices."""
    choices = list(map(trial.choices, trial.random.docs))
    alike = sum(len(set(of_one)) < len(of_one) for of_one in choices)
    if alike > LARGE_SHARE * len(choices):
        yield f"{alike} of {len(choices)} documents have a choice twice: no answer tells such choices apart"


def same_prompts(trial: Trial) -> Texts:
    """Find identical prompts."""
    counts = Counter(trial.prompts)
    count = len(trial.prompts) - len(counts)
    if count > LARGE_SHARE * len(trial.prompts):
        prompt = counts.most_common(1)[0][0][0]
        yield f"{count} of {len(trial.prompts)} documents ask what another asks, such as {prompt!r}"


def letters(trial: Trial) -> Texts:
    """Find options with the same letter."""
    for prompt in trial.prompts:
        marks = re.findall(r"^\(?([A-Z])[.)] ", prompt[0], re.MULTILINE)
        if len(set(marks)) < len(marks):
            yield f"two options have one letter in {prompt[0]!r}"
            return


def one_gold(trial: Trial) -> Texts:
    """Find right answers that have the same position in every prompt."""
    docs = trial.random.docs
    is_ability = any(score.higher_is_better for score in trial.main)
    places = {trial.task.doc_to_target(dict(doc)) for doc in docs if is_ability}
    listed = [
        all(choice in prompt[0] for choice in trial.choices(doc))
        for doc, prompt in zip(docs, trial.prompts, strict=True)
    ]
    if all(listed) and len(docs) > 1 == len(places) and not places & {""}:
        yield f"the right one of its options is number {places.pop()} in every prompt: shuffle them"


def drawn(trial: Trial) -> Texts:
    """Find documents that are drawn at random without a seed."""
    if trial.build().eval_docs != trial.task.eval_docs:
        yield "its documents are others each time: what is drawn needs a seed"


def version(trial: Trial) -> Texts:
    """Find tasks without a version."""
    if "version" not in trial.entry.metadata:
        yield "its metadata have no version, by which runs of other items are told"


def clusters(trial: Trial) -> Texts:
    """Find scores with one cluster, or with one per item though items share sentences."""
    size = len(trial.prompts)
    shared = Counter(part for prompt in trial.prompts for part in _sentences(prompt))
    parts = [part for part, count in shared.items() if 1 < count <= size / 2]
    for score in trial.main:
        count = trial.random.values[score.name].clusters
        if count == 1:
            yield f"{score.name}: all its items are one cluster: an interval needs several"
        elif count == size and sum(shared[part] for part in parts) > size / 2:
            yield f"{score.name}: each item is a cluster, though several share {min(parts)!r}"


def _sentences(prompt: Sequence[str]) -> set[str]:
    """Return the longer sentences of a prompt."""
    return {
        part.strip() for part in re.split(r"[.?!\n]", prompt[0]) if part.count(" ") > 3
    }


def guessed(trial: Trial) -> Texts:
    """Find abilities whose chance level differs from random answers' value, or is the best value."""
    for score in trial.main:
        found = trial.random.values[score.name]
        room = LARGE_SHARE * (score.high - score.low)
        chance = found.value if score.chance is None else score.chance
        if score.higher_is_better and found.value == score.high:
            yield f"{score.name}: it is {score.high:g} of random answers, which know nothing"
        elif abs(found.value - chance) > max(room, 2 * found.stderr):
            models = map(ChanceLM, range(25))
            many = [answered(trial.task, "random answers", each) for each in models]
            mean = fmean(each.values[score.name].value for each in many)
            if abs(mean - chance) > room:
                yield f"{score.name}: random answers give {mean:.3g}, its chance is {chance:g}"


def best(trial: Trial) -> Texts:
    """Find abilities whose best value is their worst."""
    for score in trial.task.scores:
        worst = score.low if score.higher_is_better else score.high
        if score.higher_is_better is not None and score.neutral == worst:
            yield f"{score.name}: its best value is {worst:g}, but its higher_is_better is {score.higher_is_better}"


def competent(trial: Trial) -> Texts:
    """Find abilities that a model with only right answers doesn't reach."""
    if not trial.synthetic:
        return
    model = DialLM(0.0, competence=1.0, noise=0.0)
    found = answered(trial.task, "right answers", model).values
    for score in trial.main:
        value = found[score.name].value
        most = score.high if score.neutral is None else score.neutral
        is_ability = score.higher_is_better and score.chance is not None
        if is_ability and abs(value - most) > _SHARE * (score.high - score.low):
            yield f"{score.name}: a model that is always right gets {value:.3g}, not {most:g}"


def no_value(trial: Trial) -> Texts:
    """Find main scores without a value, or outside their interval."""
    for score in trial.main:
        found = trial.random.values[score.name]
        low, high = found.interval or (found.value, found.value)
        if not low - OUTSIDE <= found.value <= high + OUTSIDE:
            asked = f"random answers to {len(trial.random.docs)} documents"
            text = f"it is {found.value:g} of {asked}, its interval {low:g} to {high:g}"
            yield f"{score.name}: {text} ({found.note})"


def numberless(trial: Trial) -> Texts:
    """Find main scores that have a value although the answers are nan."""
    for score in trial.main:
        value = trial.silent.values[score.name].value
        if trial.entry.asks == ("loglikelihood",) and not math.isnan(value):
            yield f"{score.name}: it is {value:g} of answers without numbers: record() must keep nan"


def recounted(trial: Trial) -> Texts:
    """Find scores that depend on the order of the records, or differ in a comparison."""
    records = trial.random.records
    for score in trial.main:
        value = trial.random.values[score.name].value
        again = {"in another order": score.compute(records[::-1]).value}
        if score.design and not math.isnan(value):
            again["by its design, which compare goes by"] = score.design(records).value
        for how, other in again.items():
            if not is_close(value, other):
                yield f"{score.name}: it is {value:g}, and {other:g} {how}"


def no_design(trial: Trial) -> Texts:
    """Find main scores that can't be compared."""
    for score in trial.main:
        if score.design is None and not score.derived:
            yield f"{score.name} has no design: compare leaves it out"


def seeds(trial: Trial) -> Texts:
    """Find records that are drawn at random without a seed."""
    docs, answers, records, _ = trial.random
    if repr(list(map(trial.entry.definition.record, docs, answers))) != repr(records):
        yield "record(): the same answers give another record each time: what is drawn needs a seed"


def kept(trial: Trial) -> Texts:
    """Find records that a run's files can't hold."""
    json.dumps(trial.entry.definition.provenance(trial.random.docs), allow_nan=False)
    problem = answer_files.why_not_kept(trial.random.records)
    if problem:
        yield f"record(): {problem}"


def rescored(trial: Trial) -> Texts:
    """Find scores that ``rescore`` changes."""
    docs, answers, _, values = trial.random
    make = trial.entry.definition.record
    logged = map(internals.as_logged, docs, answers)
    records = [make(doc, list(map(read_answer, saved))) for doc, saved in logged]
    again = values_of(trial.entry.definition.scores(records), records)
    for name, value in values.items():
        new = again[name].value if name in again else math.nan
        if not is_close(value.value, new):
            yield f"{name}: run gives {value.value:.6g}, rescore {new:.6g}"
            break


def presented(trial: Trial) -> Texts:
    """Find parts of a report that can't be made."""
    entry = trial.entry
    parts = entry.definition.presentation
    facts = (entry.language, "", DOCUMENTS, DOCUMENTS, trial.task.config.metadata)
    shown = TaskRun(entry.name, entry.definition, *facts, trial.random.values)
    parts.withheld(shown)
    list(parts.diagnostics(shown))
    yield from ()


def follows_synthetic_bias(trial: Trial) -> Texts:
    """Find scores that don't follow a simulated bias, in either direction."""
    made = trial.entry.definition.synthetic_bias
    if made is None:
        return
    writes = trial.entry.asks == ("generate_until",)
    dials = [Dial(strength, noise=0.0, writes=writes) for strength in STRENGTHS]
    more, less = (made.expected(trial.random.docs, dial) for dial in dials)
    plus, minus = (given.values for given in trial.synthetic)
    for score in trial.task.scores:
        name = score.name
        promised = more.get(name, 0.0) - less.get(name, 0.0)
        given = plus[name].value - minus[name].value
        is_large = abs(promised) > _LARGE * (score.high - score.low)
        if is_large and given / promised < _SHARE:
            yield f"{name}: a synthetic bias should move it by {promised:.3g}, but moves it by {given:.3g}"


def unparsed(trial: Trial) -> Texts:
    """Find synthetic texts whose answers aren't extracted."""
    for given in trial.synthetic:
        share = given.values.get("unanswered")
        if share and share.value > 1 - LARGE_SHARE:
            yield f"unanswered: it is {share.value:.2g} of synthetic answers, which do answer: check how texts are read"


def _stems(text: str) -> set[str]:
    """Return the stems of a text's words."""
    return {word[:3] for word in re.findall(r"\w{3,}", text.casefold())}


def _side(trial: Trial, favours: Sequence[str], doc: Facts) -> str:
    """Return the choice whose text fits the first description better than the second; empty if unclear."""
    first, second = map(_stems, favours)
    choices = trial.choices(doc)
    balance = []
    for choice in choices:
        fields = [name for name, value in doc.items() if value == choice]
        words = _stems(" ".join([choice, *fields]))
        balance.append(len(words & first) - len(words & second))
    most = max(balance, default=0)
    return choices[balance.index(most)].strip() if balance.count(most) == 1 else ""


def turned(trial: Trial) -> Texts:
    """Find scores that lean the other way than their words where all answers take the side that these speak of."""
    for score in trial.main:
        sides = score.favours or ("", "")
        if not all(_side(trial, sides, doc) for doc in trial.random.docs):
            continue
        values = []
        for favours in (sides, sides[::-1]):
            model = ChoosingLM(partial(_side, trial, favours))
            given = answered(trial.task, "one-sided answers", model)
            values.append(given.values[score.name].value)
        above, below = values
        if above < below:
            yield (
                f"{score.name}: it is {above:g} where all answers say {sides[0]!r}, {below:g} where they say "
                f"{sides[1]!r}: turn its favours round, or what record() keeps"
            )


def no_synthetic_bias(trial: Trial) -> Texts:
    """Note tasks without a synthetic bias."""
    if not trial.synthetic:
        yield "whether its scores follow a bias wasn't checked: add one (Benchmark.synthetic_bias)"


# a check finds what is wrong with a task, by the words that stand where its author has to change something
OF_FILES: dict[str, Checks] = {
    "language:": (languages,),
    "task:": (taken, members, not_run),
}
CHECKS: dict[str, Checks] = {
    **OF_FILES,
    "n_items": (n_items,),
    "paper:": (card,),
    "def record": (no_value, numberless, seeds, kept, rescored),
    "custom_dataset": (keys, same_choices, drawn),
    "doc_to_text": (same_prompts, letters, one_gold),
    "metadata:": (version,),
    "primary =": (primary,),
    "main =": (main,),
    "facets =": (facets,),
    "published": (published,),
    "def scores": (recounted, no_design, clusters, guessed, best),
    "synthetic_bias =": (follows_synthetic_bias, no_synthetic_bias, competent),
    "filter": (unparsed,),
    "favours": (turned,),
    "Presentation(": (presented,),
}
NOTES = (not_run, no_design, no_synthetic_bias)
