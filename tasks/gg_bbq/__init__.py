"""GG-BBQ: German gender bias in question answering (Satheesh et al. 2025)."""
