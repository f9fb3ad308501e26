"""Training that is killed at any moment and started again makes the same model, and leaves nothing else."""

import json
import os
import random
import subprocess
import sys

import pytest

from tests.support import stand_ins, tiny
from tests.support.places import ROOT

PAIRS, TRAINING = (f"lm_eval_bias.models.next_sentence.{name}" for name in ("sentence_pairs", "nsp_training"))
MOMENTS = {
    "segmenting": ("sentencex:segment", 20),
    "drawing pairs": (f"{PAIRS}:_draw", 2),
    "claiming the folder": (f"{TRAINING}:write_whole", 1),
    **{f"pair {n}": (f"{PAIRS}:Pairs.__getitem__", n) for n in sorted(random.Random(1).sample(range(1, 156), 4))},
    "saving weights": ("transformers:Trainer.save_model", 2),
    "saving the optimizer": ("transformers:Trainer._save_optimizer_and_scheduler", 2),
    "saving the state": ("transformers.trainer_callback:TrainerState.save_to_json", 3),
    "testing": (f"{TRAINING}:accuracy", 1),
    "saving the model": ("safetensors.torch:save_file", 1),
}


@pytest.mark.slow
def test_a_kill_at_any_moment_changes_nothing(tmp_path):
    stand_ins.MAKERS["articles"](None, tmp_path / "texts")
    arguments = f"nsp train --model {tiny.gpt2(tmp_path / 'model')} --corpus {tmp_path / 'texts'} --language en"
    arguments += " --max_pairs 96 --max_held_out 20 --batch_size 4 --accumulate 2 --evaluate_every 3 --patience 99"
    arguments += " --body_rate 1e-3 --max_length 64 --held_out 0.1 --trainer use_cpu=true -o"
    order = [("whole", None), *((name, at) for name, moment in MOMENTS.items() for at in (moment, None))]
    lines = []
    for name, at in order:
        log, command = str(tmp_path / f"{name}.log"), [*arguments.split(), str(tmp_path / name)]
        lines.append(json.dumps({"arguments": command, "log": log, "at": at}))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "forked.py")], input="\n".join(lines), capture_output=True,
        text=True, timeout=900, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for (name, at), answer in zip(order, done.stdout.splitlines()[1:], strict=True):
        said = (tmp_path / f"{name}.log.out").read_text()[-2000:]
        assert json.loads(answer)["status"] == (-9 if at else 0), (name, said)
    whole, *others = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name, at in order if not at
    )
    assert [name for name, other in zip(MOMENTS, others, strict=True) if other != whole] == []
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".") or path.suffix == ".work"]
