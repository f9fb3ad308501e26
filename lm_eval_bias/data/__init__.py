"""Pinned upstream data.

In comes the name of a set of files; out go paths of files whose SHA-256 is the pinned one, downloaded or from a mirror.
It must not know what the files hold, nor open one that has another hash.
"""
