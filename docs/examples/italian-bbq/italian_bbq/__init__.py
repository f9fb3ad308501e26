"""BBQ's questions about age in Italian, a few made up as an example."""
