"""Surrogate objectives. Each module defines one plug-in or two closely related ones."""
