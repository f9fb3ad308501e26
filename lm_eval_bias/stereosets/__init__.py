"""Data sets in the form of StereoSet that are not the published ones: their file, their checks, their tasks."""
