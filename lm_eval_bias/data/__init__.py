"""Pinned upstream data: manifest, verified download, dataset builders."""
