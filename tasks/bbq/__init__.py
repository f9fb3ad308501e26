"""BBQ: the harness's tasks."""
