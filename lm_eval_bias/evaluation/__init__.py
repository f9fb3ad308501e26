"""From a command line to a finished run: suites, checks before the model is loaded, the run itself."""
