"""From a command line to a finished run: suites, checks before the model is loaded, time estimates, the run itself."""
