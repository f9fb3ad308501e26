"""Leaderboards: one table a task, with ranks as intervals.

In come runs and published scores; out go boards, whose rows have no order of merit but their ranks. It must not
know how a board is shown.
"""
