"""EsBBQ and CaBBQ: bias in Spanish and Catalan question answering (Ruiz-Fernández et al. 2025)."""
