"""The commands of regard: train a head, label any texts."""
