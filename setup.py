"""Finds the packages: three folders beside ``lm_eval_bias`` are parts of it (``package-dir`` in pyproject.toml)."""

from setuptools import find_packages, setup

BESIDE = ("tasks", "custom_metrics", "results")

setup(
    packages=find_packages(include=["lm_eval_bias", "lm_eval_bias.*"])
    + [
        f"lm_eval_bias.{name}"
        for folder in BESIDE
        for name in find_packages(include=[folder, f"{folder}.*"])
    ]
)
