"""The thin layer between the package and the harness: task class, filters, aggregations, registration."""
