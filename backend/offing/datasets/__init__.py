"""Datasets: tasks with their documents as files, and importers of published formats. Nothing here uses the database."""
