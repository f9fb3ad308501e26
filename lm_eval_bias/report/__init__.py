"""What people read: pages, tables, figures, and lines on a terminal.

In come runs, findings, boards and verdicts; out goes text in the format that was asked for. It must not compute a
score, nor decide what a number means.
"""
