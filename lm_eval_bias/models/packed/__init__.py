"""Log-likelihoods of many requests with each common beginning run once.

``trie_layout`` and ``strands`` lay the requests' trie out, ``packed_forwards`` and ``trie_walk`` are the methods to run
it, ``method_trial`` finds out which of them a model does right.
"""
