"""Log-likelihoods of many requests with each common beginning run once.

``strands`` and ``plan`` lay the requests' trie out, ``walk`` and ``forwards`` run it in one of four ways, ``proof`` finds
out which of them a model does right.
"""
