"""What the flows share: shapes, prompt parts, findings, and how a failure or a budget becomes a reason to stop."""

from pathlib import Path

ROOMS = tuple(Path(__file__).parent.parent / name for name in ("parts", "extractive"))
"""Folders that belong to every flow's content hash, beside its own."""
