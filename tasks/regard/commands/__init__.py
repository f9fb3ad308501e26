"""The command of regard: train a head."""
