"""Model types that the package adds to the harness."""
