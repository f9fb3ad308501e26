"""Checks runs against a policy. Anything that can't be determined counts as a violation."""
