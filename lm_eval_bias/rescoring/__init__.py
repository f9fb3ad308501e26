"""Recomputes scores from what a run saved, without a model; one reader a file format."""
