"""Runs that were made: harness result folders and this package's own run files, read as one kind of thing."""
