"""The commands of StereoSet: translations and sets of one's own, and the authors' prediction files."""
