"""Training a model to tell whether a sentence follows another."""
