"""Runs that were made: the harness's result files with their sample logs.

In come files, or results in memory; out go ``Run`` and ``TaskRun`` with notes, the same ones for ``run``,
``rescore``, reports, comparisons, boards and gates. It must not know how any of these show them.
"""
