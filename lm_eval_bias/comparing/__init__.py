"""Differences between runs on the same items, with the uncertainty that clustered items leave."""
