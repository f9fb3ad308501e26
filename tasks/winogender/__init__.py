"""Winogender: the harness's tasks."""
