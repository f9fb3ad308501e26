"""Log-likelihoods of many requests with each common beginning run once.

``layouts`` lays the requests' trie out, ``trie_walk`` and ``packed_forwards`` are the methods to run it,
``method_trial`` finds out which of them a model does right.
"""
