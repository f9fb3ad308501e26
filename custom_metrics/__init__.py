"""Scores of the bias benchmarks as pure numpy/scipy functions, one paper a file.

Nothing here imports the harness, torch or transformers: each score takes plain records and returns an
:class:`~lm_eval_bias.custom_metrics.score.Estimate`.
"""
