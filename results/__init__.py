"""Published scores; ``runs/`` is not part of the installed package."""
