"""Clock and randomness of the machine, for code that must not use them directly."""

import os
import time
from uuid import UUID

from offing.core.ids import uuid7


def new_id() -> UUID:
    """Return a time-ordered id for the present time."""
    return uuid7(time.time_ns() // 1_000_000, os.urandom(10))
