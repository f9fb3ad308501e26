"""Published scores and the schema of run files; ``runs/`` and ``figures/`` are not part of the installed package."""
