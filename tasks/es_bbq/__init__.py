"""EsBBQ and CaBBQ: bias in Spanish and Catalan question answering (Ruiz-Fernández et al. 2025)."""

UNKNOWNS = 9  # the authors' wordings of "unknown", beside two persons
