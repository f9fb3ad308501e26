"""Training that is killed at any moment and started again: the same model, every pair seen once."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny

PAIRS, UPDATE, LOOK = 96, 8, 3  # pairs, pairs an update, updates between checkpoints
ROWS = "lm_eval_bias.models.next_sentence.sentence_pairs:Pairs.__getitem__"
DRAW = random.Random(20261122)
MOMENTS = {
    "segmenting": ("lm_eval_bias.models.next_sentence.sentence_pairs:_segmented", 20),
    "drawing pairs": ("lm_eval_bias.models.next_sentence.sentence_pairs:_draw", 2),
    "claiming the folder": ("lm_eval_bias.models.next_sentence.nsp_training:write_whole", 1),
    **{f"pair {n}": (ROWS, n) for n in sorted(DRAW.sample(range(1, PAIRS + 60), 4))},
    "saving weights": ("transformers:Trainer.save_model", 2),
    "saving the optimizer": ("transformers:Trainer._save_optimizer_and_scheduler", 2),
    "saving the state": ("transformers.trainer_callback:TrainerState.save_to_json", 3),
    "testing": ("lm_eval_bias.models.next_sentence.nsp_training:accuracy", 1),
    "saving the model": ("safetensors.torch:save_file", 1),
}


@pytest.mark.slow
def test_a_kill_at_any_moment_changes_nothing(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(24):
        said = [
            f"Case {number} of {place} is said by {random.Random(number * 9 + place).random()}." for place in range(9)
        ]
        (texts / f"{number:02}.txt").write_text(" ".join(said), encoding="utf-8")
    arguments = ["nsp", "train", "--model", tiny.gpt2(tmp_path / "model"), "--corpus", str(texts), "--language", "en"]
    arguments += ["--max_pairs", str(PAIRS), "--max_held_out", "20", "--batch_size", "4", "--accumulate", "2"]
    arguments += ["--evaluate_every", str(LOOK), "--patience", "99", "--body_rate", "1e-3", "--max_length", "64"]
    arguments += ["--held_out", "0.1", "--trainer", "use_cpu=true"]

    def attempt(name, **more):
        return {
            "arguments": [*arguments, "-o", str(tmp_path / name)],
            "log": str(tmp_path / f"{name}.log"),
            "pairs": PAIRS,
            **more,
        }

    orders = [attempt("whole")]
    for name, moment in MOMENTS.items():
        orders += [attempt(name, at=moment), attempt(name)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed.py"))],
        input=json.dumps(orders), capture_output=True, text=True, timeout=900,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    statuses = json.loads(done.stdout.splitlines()[-1])
    outputs = {name: (tmp_path / f"{name}.log.out").read_text()[-2000:] for name in ("whole", *MOMENTS)}
    assert statuses[0] == 0, outputs["whole"]
    for name, killed, again in zip(MOMENTS, statuses[1::2], statuses[2::2], strict=True):
        assert (killed, again) == (-9, 0), (name, outputs[name])
    straight = (tmp_path / "whole.log").read_text().split()
    assert sorted(map(int, straight)) == list(range(PAIRS))
    for name in MOMENTS:
        seen = (tmp_path / f"{name}.log").read_text().split()
        twice = len(seen) - PAIRS  # since the last checkpoint
        assert 0 <= twice <= LOOK * UPDATE + UPDATE
        assert any(seen[:cut] + seen[cut + twice :] == straight for cut in range(PAIRS + 1)), name
        assert not (tmp_path / f"{name}.work").exists()
        files = {path.name for path in (tmp_path / name).iterdir()}
        assert files == {path.name for path in (tmp_path / "whole").iterdir()}
        for file in ("model.safetensors", "nsp_head.safetensors", "nsp_config.json", "README.md"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), (name, file)
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not left
