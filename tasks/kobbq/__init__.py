"""KoBBQ: Korean bias in question answering (Jin et al. 2024)."""
