"""Log-likelihoods of many requests with each common beginning run once.

``trie_walk`` and ``packed_forwards`` are methods to do so, ``method_trial`` finds out which of them a model does right.
"""
