"""Importers of published datasets. Each format is one module behind `offing.datasets.dataset_format`."""
