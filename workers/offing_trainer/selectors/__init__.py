"""Selectors of groups and rows. Each module defines one plug-in or several related ones."""
