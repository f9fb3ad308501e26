"""``doctor``: which versions are there, whether they are supported, what is linked, where data comes from."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.version import __version__
from lm_eval_bias.data import sources
from lm_eval_bias.data.download import offline
from lm_eval_bias.harness import linking, registration


@dataclass(frozen=True)
class Diagnosis:
    """One line of the report.

    Attributes:
        status: ``ok``, ``note`` (works, worth knowing) or ``problem``.
        text: What was found and, for a problem, what to do.
    """

    status: str
    text: str


def _models() -> Diagnosis:
    names = registration.model_types()
    if not names:
        return Diagnosis(
            "problem",
            "no model types added, because the package is not installed: run 'pip install -e .' in its folder",
        )
    return Diagnosis("ok", f"model types added: {', '.join(names)}")


def _link() -> Diagnosis:
    try:
        link = linking.state()
        if linking.unnecessary():
            leftover = "; 'lm-eval-bias link --remove' removes what an earlier link wrote" if link.stubs else ""
            return Diagnosis(
                "ok",
                f"link not needed: plain 'lm_eval --tasks occugender' works, because this version of the harness reads "
                f"entry points{leftover}",
            )
    except BiasError as error:
        return Diagnosis("problem", str(error))
    if link.problem:
        return Diagnosis("problem", f"link: {link.problem}")
    if link.stubs:
        return Diagnosis(
            "ok", f"linked: plain 'lm_eval --tasks occugender' works ({len(link.stubs)} stubs in {link.folder})"
        )
    return Diagnosis("ok", "not linked: use 'lm-eval-bias run' or --include_path, or run 'lm-eval-bias link' once")


def _data() -> list[Diagnosis]:
    try:
        local = sources.mirror()
    except BiasError as error:
        return [Diagnosis("problem", str(error))]
    files = list(sources.manifest().files.values())
    if local is not None:
        damaged = []
        for source in files:
            try:
                wrong = source.check(sources.mirrored_path(source, local))
            except OSError:
                wrong = "missing"
            if wrong:
                damaged.append(f"{source.name} ({wrong})")
        if damaged:
            return [Diagnosis("problem", f"data: mirror {local} lacks or changes {', '.join(damaged)}")]
        return [Diagnosis("ok", f"data: local mirror {local}, all {len(files)} files verified (LM_EVAL_BIAS_DATA)")]
    cached = [s for s in files if sources.cached_path(s).is_file() and not s.check(sources.cached_path(s))]
    verified = f"{len(cached)} of {len(files)} files verified in {sources.cache_dir()}"
    if len(cached) == len(files):
        return [Diagnosis("ok", f"data: {verified}")]
    if offline():
        return [Diagnosis("note", f"data: {verified}; HF_HUB_OFFLINE is set, so the rest can't be downloaded")]
    return [
        Diagnosis("ok", f"data: {verified}; the rest is downloaded on first use ('lm-eval-bias fetch' does it now)")
    ]


def examine() -> list[Diagnosis]:
    """All findings."""
    python = platform.python_version()
    entries = catalog.packaged()
    tasks = sum(e.kind == "task" for e in entries.values())
    return [
        Diagnosis("ok", f"lm-eval-bias {__version__}: {tasks} tasks, {len(entries) - tasks} groups"),
        Diagnosis("ok" if sys.version_info >= (3, 10) else "problem", f"python {python}"),
        *(Diagnosis(*registration.examine(package)) for package in registration.SUPPORTED),
        _models(),
        _link(),
        *_data(),
    ]


def examine_benchmark(name: str) -> list[Diagnosis]:
    """What is wrong with a benchmark, a finding each, and what was checked.

    Raises:
        BiasError: There is none of that name.
    """
    from lm_eval_bias.evaluation.benchmark_checks import Examination

    found = Examination(name)
    problems = [Diagnosis("problem", text) for text in found.mistakes]
    checked = Diagnosis("ok", f"{found.family.name}: no mistake found; tasks that were run: {len(found.scores)}")
    return [*(Diagnosis("note", text) for text in found.notes), *(problems or [checked])]
