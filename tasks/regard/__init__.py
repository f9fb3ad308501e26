"""German and English regard."""
