"""Runs in other people's formats: files that they can read, written here and never sent anywhere."""
