"""The command line: a module per command, imported when it is called."""
