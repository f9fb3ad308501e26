"""Model types that the package adds to the harness.

In come ``--model_args`` and requests; out go answers. ``hf-packed`` and ``vllm-packed`` answer what ``hf`` and ``vllm``
do with less work; ``bias-chance`` and ``bias-dial`` have no weights. They must not know which task asks.
"""
