"""The floor: plain data, benchmarks and tasks, errors and files. Imports nothing that stands above it."""

__version__ = "0.3.0"
