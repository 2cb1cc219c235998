"""Regularizers, which are added to the surrogate. Each module defines one plug-in."""
