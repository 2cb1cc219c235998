"""Name of a process that claims runs and jobs: its host, process id, and a nonce that makes it unique.

The parent passes the nonce in OFFING_PROCESS_NONCE, so that it can derive the name of an ended process.
"""

import os
import secrets
import socket

from offing import environment

NONCE_VARIABLE = "OFFING_PROCESS_NONCE"

_generated_nonce = secrets.token_hex(4)


def render_process_name(pid: int, nonce: str) -> str:
    """Return the name of a process on this host."""
    return f"{socket.gethostname()}:{pid}:{nonce}"


def get_process_name() -> str:
    """Return the name of this process. Without a nonce in the environment, one is generated."""
    return render_process_name(os.getpid(), environment.VARIABLES.get(NONCE_VARIABLE, "") or _generated_nonce)
