"""Languages of EsBBQ and CaBBQ: parallel items are paired, others are independent samples."""

import json

from lm_eval_bias.cli.main import main

RUN = ["run", "--model", "bias-dial", "--model_args", "strength=0.2", "--log_samples", "--limit", "192"]
TASKS = "es_bbq_religion,ca_bbq_religion,es_bbq_physical_appearance,ca_bbq_physical_appearance"


def test_parallel_items_are_paired_and_others_are_independent(mirror, tmp_path, capsys):
    assert main([*RUN, "--tasks", TASKS, "--output_path", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path), "--by", "language", "--base", "es", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["what"], row["other"]): row["paired"] for row in rows} == {
        ("*_bbq_religion", "language ca"): True,
        ("*_bbq_physical_appearance", "language ca"): False,
    }
    names = {f"{kind}_{context}_three" for kind in ("acc", "bias_score") for context in ("ambig", "disambig")}
    assert {row["score"] for row in rows} == names
