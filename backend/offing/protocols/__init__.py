"""Protocols of other programs over Offing's own runs. Each is a thin package over the services."""
