"""Rewards. Each module defines one plug-in."""
