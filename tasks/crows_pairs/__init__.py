"""CrowS-Pairs: the harness's tasks."""
