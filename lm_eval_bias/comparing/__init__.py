"""Differences between runs, or between languages and conditions within one, and whether they can be told."""
