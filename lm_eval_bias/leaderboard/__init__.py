"""A table of runs beside the models that the papers published, with intervals of rank."""
