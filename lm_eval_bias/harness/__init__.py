"""The thin layer between the package and the harness: task class, scores as metrics, registration."""
