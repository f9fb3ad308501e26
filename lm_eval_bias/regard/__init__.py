"""Regard: prompts, sentences, sexism keywords, and the classifiers that say how a text regards its subject."""
