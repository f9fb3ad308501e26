"""How a model answers requests that the harness has no method for, and how written answers are read.

In come a model of the harness and requests; out go log-likelihoods, ranks of candidates, and what a text says. It must
not know scores or result files.
"""
