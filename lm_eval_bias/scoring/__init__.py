"""How a model answers requests that the harness has no method for."""
