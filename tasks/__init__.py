"""Task YAMLs and their hooks, one folder a benchmark."""
