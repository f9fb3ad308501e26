"""Log-likelihoods of many requests with each common beginning run once.

``plan`` and ``strands`` lay the requests' trie out, ``forwards`` and ``walk`` are the ways to run it, ``proof`` finds
out which of them a model does right.
"""
