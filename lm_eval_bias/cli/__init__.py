"""The command line: commands are functions, whose modules are imported when they are called.

``main`` lists them; ``signatures`` makes parsers of them.
"""
