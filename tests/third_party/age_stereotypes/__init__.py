"""Age stereotypes in English."""
