"""OccuGender: occupational gender bias (Chen et al. 2025)."""
