"""StereoSet in languages of one's own: translation and its review, checks, and tasks over the result."""
