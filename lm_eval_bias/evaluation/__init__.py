"""From a configuration to a finished run.

In come flags; out go the files of a run, whole or not at all. Suites choose items, the preflight refuses what can be
refused before a model is loaded. It must not know how results are told.
"""
