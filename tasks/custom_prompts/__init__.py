"""Prompts of a user's own."""
