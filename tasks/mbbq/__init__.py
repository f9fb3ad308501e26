"""MBBQ: parallel question answering in four languages, with control items (Neplenbroek et al. 2024)."""
