"""vLLM answers as ``hf`` does.

Needs an environment of its own (``vllm_cpu.sh``), whose folder ``LM_EVAL_BIAS_VLLM`` names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, registry
from tests.support import tiny
from tests.support.places import find_mirror
from tests.support.run_scores import logs_of, results_of

pytestmark = pytest.mark.slow
TASKS = "occugender_debias_explicit_none,occugender_debias_implicit_none,gg_bbq_group_terms,stereoset_en"
# those that need a file of the user's apart
KNOWN = {
    name: entry
    for name, entry in catalog.entries().items()
    if "required" not in registry.get(entry.benchmark).options.roles.values()
}
LIMIT = "6"
CLOSE = 1e-3  # nats; scores in units of their range
SMALL = ["--limit", LIMIT, "--log_samples"]
SHORT = [
    "--metadata",
    '{"repeats": 2, "classifier": "light"}',
    "--gen_kwargs",
    '{"max_gen_toks": 16, "seed": null}',
]
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
    "TQDM_DISABLE": "",  # vLLM 0.32 divides by the time that its progress bar shows
}


@pytest.fixture(scope="module")
def installed():
    folder = os.environ.get("LM_EVAL_BIAS_VLLM")
    if not folder:
        pytest.skip(
            "LM_EVAL_BIAS_VLLM names no environment with vLLM (tests/backends/vllm_cpu.sh makes one)"
        )
    found = Path(folder) / "bin"
    assert (found / "vllm").is_file(), f"LM_EVAL_BIAS_VLLM: no {found / 'vllm'}"
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny.served(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    data = find_mirror()
    if data is None:
        pytest.skip("no mirror of the upstream data (set LM_EVAL_BIAS_DATA)")
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_BIAS_DATA", str(data))
        patch.setenv("LM_EVAL_BIAS_CACHE", str(cache))
        yield {**os.environ, **ENVIRONMENT}


@pytest.fixture(scope="module")
def hf(model, environment, tmp_path_factory):
    """What transformers says: results and answers."""
    out = tmp_path_factory.mktemp("hf")
    where = f"pretrained={model},dtype=float32"
    arguments = [
        "run",
        "--tasks",
        TASKS,
        "--model",
        "hf",
        "--model_args",
        where,
        "--device",
        "cpu",
        *SMALL,
    ]
    assert main([*arguments, "--batch_size", "16", "--output_path", str(out)]) == 0
    return results_of(out), answers(out)


@pytest.fixture(autouse=True)
def _data(mirror):
    """The upstream files also where a test has its own variables."""


def answers(folder):
    """The answers in the logs of a run: {task: {document: [answers]}}."""
    return {
        task: {sample["doc_id"]: sample["filtered_resps"] for sample in samples}
        for task, samples in logs_of(folder).items()
    }


def values(answer):
    """Numbers of an answer, without whether it is greedy."""
    return [float(value[0] if isinstance(value, list) else value) for value in answer]


def assert_same(out, hf):
    results, wanted = hf
    found, again = answers(out), results_of(out)
    for task, documents in wanted.items():
        assert found[task].keys() == documents.keys()
        assert len(documents) == int(LIMIT)
        for document, own in documents.items():
            assert values(found[task][document]) == pytest.approx(
                values(own), abs=CLOSE
            ), (task, document)
    checked = 0
    for task in wanted:
        for entry in results["configs"][task]["metric_list"]:
            low, high = entry["range"]
            own, other = (
                r["results"][task][f"{entry['metric']},none"] for r in (results, again)
            )
            if low is not None and high is not None and own == own:
                assert other == pytest.approx(own, abs=CLOSE * (high - low)), (
                    task,
                    entry["metric"],
                )
                checked += 1
    assert checked > 60


def test_scores_in_process_are_hfs(installed, model, environment, hf, tmp_path):
    names = [name for name, entry in KNOWN.items() if entry.kind == "task"]
    where = f"pretrained={model},dtype=float32,max_model_len=2048,enforce_eager=True"
    command = [
        str(installed / "lm-eval-bias"),
        "run",
        "--tasks",
        ",".join(names),
        "--model",
        "vllm",
        "--model_args",
    ]
    command += [
        where,
        *SMALL,
        *SHORT,
        "--batch_size",
        "auto",
        "--output_path",
        str(tmp_path),
        "--verbosity",
        "info",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert answers(tmp_path).keys() == set(names)
    assert_same(tmp_path, hf)
