"""Mutation testing of one module: mutmut changes it in hundreds of small ways, and its tests should notice each.

The parts of the package lie in three folders of the checkout, and mutmut wants them where they are imported from: so a
copy in the installed layout goes to build/mutation/, and nothing in the checkout changes. CONTRIBUTING.md says how to
read what survives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
MODULES = Path(__file__).with_name("modules.yaml")
BESIDE = ("tasks", "custom_metrics", "results")
CAUGHT = ("killed", "timeout")
ENOUGH = 0.95
STRING = re.compile(r'"[^"]*"')


def without_prose(line: str) -> str:
    """A line without its strings of several words, which people alone read.

    >>> without_prose('given = {"chi2": 1, "why not": 2}')
    'given = {"chi2": 1, : 2}'
    """
    return STRING.sub(lambda string: "" if " " in string[0] else string[0], line)


def stage(module: str, tests: list[str], folder: Path) -> None:
    """The package in its installed layout, the tests, and mutmut's configuration for this module."""
    for name in ("lm_eval_bias", "tests"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    for name in BESIDE:
        shutil.copytree(ROOT / name, folder / "lm_eval_bias" / name, dirs_exist_ok=True)
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)  # where tests read data files
    source = module if module.startswith("lm_eval_bias/") else f"lm_eval_bias/{module}"
    # mutmut keeps copies of the original functions, whose doctests would run once a copy
    selection = [source, *tests, "-k", "not __mutmut"]
    section = (
        f"[tool.mutmut]\nonly_mutate = {json.dumps([source])}\n"
        f"pytest_add_cli_args_test_selection = {json.dumps(selection)}"
    )
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(settings.replace("[tool.mutmut]", section), encoding="utf-8")


def run(folder: Path, *command: str, output: bool = True) -> str:
    """What a command prints in that folder."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ}  # each mutant is a fork: threads would wait for each other
    environment.pop("PYTHONPATH", None)  # the copy is tested, not the checkout
    done = subprocess.run(command, cwd=folder, env=environment, text=True, check=True, capture_output=output)
    return done.stdout or ""


def changes(folder: Path, mutants: list[str]) -> dict[str, tuple[str, str]]:
    """The lines that each mutant takes away and puts in, without indentation."""
    # `mutmut show` does one mutant a call, most of which goes into starting
    script = (
        "import json, sys; from mutmut.mutation.diff_apply import get_diff_for_mutant as diff\n"
        "print(json.dumps({name: diff(name).splitlines() for name in sys.argv[1:]}))"
    )
    lines_by_mutant = json.loads(run(folder, sys.executable, "-c", script, *mutants))

    def side(lines: list[str], sign: str) -> str:
        return " ".join(line[1:].strip() for line in lines if line.startswith(sign) and not line.startswith(sign * 3))

    return {mutant: (side(lines, "-"), side(lines, "+")) for mutant, lines in lines_by_mutant.items()}


def main() -> int:
    """Run the mutants of a module, list what survives, and say whether enough were caught (exit status 0 or 1)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", help="path in the checkout, such as custom_metrics/crossed.py")
    parser.add_argument("tests", nargs="*", help="its tests; default: those that modules.yaml lists")
    parser.add_argument("--again", action="store_true", help="try only the survivors of the last run again")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args()
    listed = yaml.safe_load(MODULES.read_text(encoding="utf-8")).get(options.module, {})
    tests = options.tests or listed.get("tests")
    if not (ROOT / options.module).is_file() or not tests:
        parser.error(f"{options.module} is no file, or has no tests: name them, or list them in {MODULES}")
    folder = ROOT / "build" / "mutation" / Path(options.module).stem
    if not options.again:
        shutil.rmtree(folder, ignore_errors=True)
    stage(options.module, tests, folder)
    mutmut = str(Path(sys.executable).with_name("mutmut"))

    def verdicts() -> dict[str, str]:
        lines = run(folder, mutmut, "results", "--all", "true").splitlines()
        return dict(line.strip().rsplit(": ", 1) for line in lines if ": " in line)

    names = [name for name, verdict in verdicts().items() if verdict not in CAUGHT] if options.again else []
    run(folder, mutmut, "run", "--max-children", str(options.jobs), *names, output=False)

    reasons = {entry["becomes"]: entry["reason"] for entry in listed.get("equivalent", [])}
    verdict_by_mutant = verdicts()
    wording = 0
    survivors, equivalent = [], []
    missed = [mutant for mutant, verdict in verdict_by_mutant.items() if verdict not in CAUGHT]
    for mutant, (gone, new) in changes(folder, missed).items():
        if new in reasons:
            equivalent.append(new)
        elif without_prose(gone) == without_prose(new):
            wording += 1
        else:
            survivors.append(f"{mutant}: {verdict_by_mutant[mutant]}\n  - {gone}\n  + {new}")
    print("\n" + "\n".join(survivors))
    for new in sorted(reasons.keys() - set(equivalent)):
        print(f"No such survivor: take it out of {MODULES.name}: {new}")
    caught = len(verdict_by_mutant) - len(equivalent) - wording - len(survivors)
    share = caught / max(1, caught + len(survivors))
    print(
        f"{options.module}: {len(verdict_by_mutant)} mutants, {caught} caught, {len(equivalent)} equivalent, "
        f"{wording} of wording alone, {len(survivors)} survivors: {share:.1%} caught of those that count"
    )
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
