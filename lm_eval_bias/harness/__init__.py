"""The interface to lm-evaluation-harness: nothing else touches it.

In come our benchmarks and a configuration; out go the harness's tasks, requests, results and files. What touches an
internal of the harness stands in ``internals``. It must not know reports, boards or gates, nor how a model answers.
"""
