"""Ports for servers that a test starts as processes of their own."""

import os
import random
import socket

_DRAW = random.Random(os.getpid())
"""Test processes side by side draw other numbers."""


def free_port() -> int:
    """A port of loopback below the ephemeral range, where no client of another program gets it meanwhile."""
    for port in _DRAW.sample(range(20000, 32000), 50):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("no free port among fifty")
