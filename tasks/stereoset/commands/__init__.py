"""The commands of StereoSet: translations and sets of your own, and the authors' prediction files."""
