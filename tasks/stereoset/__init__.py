"""Multilingual StereoSet."""

LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "tr": "Turkish",
}  # published ones
TESTS = ("inter", "intra")
