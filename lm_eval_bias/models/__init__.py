"""Model types that the package adds to the harness.

In come ``--model_args`` and requests; out go answers. ``hf-packed`` answers what ``hf`` does with less work;
``bias-chance`` and ``bias-dial`` have no weights. They must not know which task asks.
"""
