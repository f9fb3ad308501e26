"""Writes runs in formats that others read, on this machine alone."""
