"""Gender words after occupations: the harness's task."""
