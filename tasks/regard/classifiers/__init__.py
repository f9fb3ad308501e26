"""Classifiers of regard: light, SentenceBERT with a trained head, models of the hub; and how a head is trained."""
