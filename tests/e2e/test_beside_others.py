"""Bias tasks beside other people's: flags that are for those, and models that can't answer everything."""

import json

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path

PLAIN, PROMPTS = "stereoset_en_intra", "occugender_explicit"


@pytest.fixture
def others(tmp_path, tiny_mirror):
    """The folder of somebody's task, which takes examples."""
    rows = [{"q": f"{i}+{i}=", "a": str(2 * i)} for i in range(4)]
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "own_sums.yaml").write_text(
        "task: own_sums\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {data}}}\n"
        "test_split: train\nfewshot_split: train\noutput_type: multiple_choice\n"
        'doc_to_text: q\ndoc_to_target: 0\ndoc_to_choice: ["0", "2"]\n'
    )
    return folder


def evaluate(model, tasks, others, **more):
    """What plain ``lm_eval`` makes of tasks."""
    manager = TaskManager(
        include_path=[str(tasks_path()), str(others)], include_defaults=False
    )
    return simple_evaluate(
        model, tasks=tasks, task_manager=manager, limit=2, bootstrap_iters=0, **more
    )


class Counting(LM):
    """Somebody's model, which can only tell likelihoods of texts."""

    def loglikelihood(self, requests):
        return [(-9.0, False) for _ in requests]

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def generate_until(self, requests):
        raise NotImplementedError


def test_a_model_that_cannot_answer_is_refused_in_one_line(others, capsys):
    with pytest.raises(BiasError, match="model type Counting .*'cloze' questions"):
        evaluate(Counting(), [PLAIN], others)
    assert evaluate(Counting(), ["own_sums", PROMPTS], others)
    capsys.readouterr()
    flags = ["--model", "dummy", "--include_path", str(others), "--limit", "2"]
    assert main(["run", "--tasks", f"own_sums,{PROMPTS},{PLAIN}", *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f": leave out {PLAIN}")
