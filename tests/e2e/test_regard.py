"""Whole regard runs: every text labelled in the log, scored again, classified again; and what goes wrong."""

import pytest

from lm_eval_bias.custom_metrics.regard import REGARDS
from tests.support.run_scores import (
    logs_of,
    numbers,
    results_of,
    run,
)


@pytest.fixture
def run_folder(tmp_path, tiny_mirror):
    run(tmp_path / "run", "regard_de,regard_en", "--metadata", '{"repeats": 12}')
    return tmp_path / "run"


def test_log_holds_every_text_with_its_label_and_probabilities(run_folder):
    samples = logs_of(run_folder)["regard_de"]
    assert len(samples) == 20
    dropped = 0
    for sample in samples:
        (texts,) = sample["filtered_resps"]
        assert len(texts) == 12 == len(sample["resps"][0])
        for text, label, *probabilities in texts:
            assert text.startswith(sample["doc"]["prompt"])
            dropped += label.startswith("dropped")
            assert label.startswith("dropped") is not bool(probabilities)
            if probabilities:
                values = [float(p) for p in probabilities]
                assert sum(values) == pytest.approx(1, abs=1e-9)
                assert REGARDS[values.index(max(values))] == label
    assert dropped > 0
    assert numbers(results_of(run_folder))["regard_de"]["dropped"] == pytest.approx(
        dropped / 240
    )
