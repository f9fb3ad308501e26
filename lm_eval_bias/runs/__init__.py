"""Runs that were made: the harness's result files with their sample logs."""
