"""How long from the start of the process to the model's first request: ``lm-eval-bias run`` beside stock ``lm_eval``.

    python tests/performance/startup.py [--rounds 5] [--tasks occugender,gg_bbq] [--pretrained FOLDER]

Each measurement is a process of its own, the two commands in turn. It stops where the harness hands the model its first
requests (with ``--pretrained``, for ``--model hf`` also where the model gets its first batch of tokens). Stock
``lm_eval`` gets our tasks by ``--include_path`` and the model type ``bias-chance``, which release 0.4.13 doesn't read
from entry points, by one line. Data are read from where ``LM_EVAL_BIAS_DATA`` or the cache has
them; a process of each before the first round, which isn't counted, warms the disk.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

from measuring import processor

RUNNER = """
import os, sys, time
side, stop_at, tasks, model, model_args = sys.argv[1:]
born = float(os.environ["STARTUP_BORN"])

def stop(*args, **kwargs):
    print(f"seconds {time.time() - born}", flush=True)
    os._exit(0)

class Patch:
    '''Patches the model class when its module is imported, so that nothing is imported sooner than it would be.'''
    def find_spec(self, name, path=None, target=None):
        wanted = {"bias-chance": ("lm_eval_bias.models.chance", "ChanceLM"),
                  "hf": ("lm_eval.models.huggingface", "HFLM")}[model]
        if name != wanted[0]:
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec
        spec = find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            kinds = ["loglikelihood", "exact_loglikelihood", "loglikelihood_with_length", "generate_until"]
            kinds += ["cloze", "next_sentence", "sentence_likelihoods"]
            for method in kinds if stop_at == "request" else ["_model_call"]:
                setattr(getattr(module, wanted[1]), method, stop)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Patch())
flags = ["run", "--tasks", tasks, "--model", model, "--device", "cpu"]
flags += ["--model_args", model_args] if model_args else []
if side == "ours":
    from lm_eval_bias.cli.main import main
    sys.argv = ["lm-eval-bias", *flags]
    sys.exit(main())
if model == "bias-chance":
    import lm_eval.models
    from lm_eval.api.registry import model_registry
    model_registry.register("bias-chance", target="lm_eval_bias.models.chance:ChanceLM")
from lm_eval_bias.core.files import tasks_path
from lm_eval.__main__ import cli_evaluate
sys.argv = ["lm_eval", *flags, "--include_path", str(tasks_path())]
cli_evaluate()
"""


def measure(side, stop_at, tasks, model, model_args=""):
    command = [sys.executable, "-c", RUNNER, side, stop_at, tasks, model, model_args]
    born = {**os.environ, "STARTUP_BORN": repr(time.time())}
    done = subprocess.run(command, env=born, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("seconds ")]
    if not lines:
        raise SystemExit(f"{side} {model} {tasks} made no request:\n{done.stderr[-3000:]}")
    return float(lines[-1].split()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=["occugender", "gg_bbq", "occugender,gg_bbq"])
    parser.add_argument("--pretrained", help="also measure --model hf with this model folder")
    args = parser.parse_args()
    cases = [("request", "bias-chance", "")]
    if args.pretrained:
        cases += [(stop_at, "hf", f"pretrained={args.pretrained}") for stop_at in ("request", "forward")]
    for side in ("stock", "ours"):
        measure(side, *cases[-1][:1], args.tasks[0], *cases[-1][1:])
    print(f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {args.rounds} rounds, medians\n")
    print("| model | until the first | tasks | lm_eval, s | lm-eval-bias, s | ratio | ratios of the rounds |")
    print("|---|---|---|---:|---:|---:|---|")
    for stop_at, model, model_args in cases:
        for tasks in args.tasks:
            rounds = []
            for _ in range(args.rounds):
                rounds.append([measure(side, stop_at, tasks, model, model_args) for side in ("stock", "ours")])
            stock, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = [our / their for their, our in rounds]
            print(
                f"| {model} | {stop_at} | {tasks} | {stock:.2f} | {ours:.2f} | {ours / stock:.2f} | "
                f"{min(ratios):.2f} to {max(ratios):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
