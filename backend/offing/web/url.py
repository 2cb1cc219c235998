"""Addresses, as the rest of this room imports them. `offing.core.url` is their home, since the tool policy reads them,
too."""

from offing.core.url import LONGEST, PORTS, Refused, Target, followed, target_of

__all__ = ["LONGEST", "PORTS", "Refused", "Target", "followed", "target_of"]
