"""Bounds that a run's scores are held against before a model is released."""
