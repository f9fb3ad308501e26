"""Log-likelihoods of many requests with each common beginning run once.

``plan`` lays the requests' trie out in rows, ``forwards`` runs it in one of three ways, ``proof`` finds out which of
them a model does right.
"""
