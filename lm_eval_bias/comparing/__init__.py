"""Differences between runs, or between languages and conditions within one, and whether they can be told.

In come runs; out go pairs of tasks on the same items, a tested difference a score, and refusals with their reasons. It
must not know how a comparison is shown.
"""
