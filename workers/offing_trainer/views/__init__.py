"""Views of stored rows. Each module defines one plug-in."""
