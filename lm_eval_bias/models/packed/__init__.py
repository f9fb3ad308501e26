"""Log-likelihoods of many requests, of which those that begin alike share a row.

``rows`` packs them, ``network`` runs a row, ``method_trial`` finds out whether a model gives the same numbers so.
"""
