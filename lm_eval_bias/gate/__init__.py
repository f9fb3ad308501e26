"""Checks of runs against a policy.

In come runs and a policy file; out go findings. Anything that can't be determined counts as a violation. It must not
know how a verdict is written.
"""
