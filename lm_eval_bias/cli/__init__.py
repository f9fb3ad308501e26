"""The command line: a module per command, imported when it is called.

A command's module, here or in a benchmark's folder, has ``add_arguments(parser)`` and ``run(arguments)``, which returns
the exit status.
"""
