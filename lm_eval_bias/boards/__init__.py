"""Leaderboards: one table per task, with ranks as intervals."""
