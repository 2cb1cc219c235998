"""The machine's clock and randomness, handed to code that must not reach for them itself."""

import os
import time
from uuid import UUID

from offing.core.ids import uuid7


def new_id() -> UUID:
    """A time-ordered id of now."""
    return uuid7(time.time_ns() // 1_000_000, os.urandom(10))
