"""The name by which a process of ours claims runs and jobs: of its host, its pid, and a nonce that makes it unique.

Whoever starts a process gives it the nonce in OFFING_PROCESS_NONCE, and so knows the name of one that has ended.
"""

import os
import secrets
import socket

NONCE_VARIABLE = "OFFING_PROCESS_NONCE"

_made = secrets.token_hex(4)


def process_name(pid: int, nonce: str) -> str:
    """The name of a process on this host."""
    return f"{socket.gethostname()}:{pid}:{nonce}"


def own_name() -> str:
    """The name of this process. Started without a nonce, it makes one."""
    return process_name(os.getpid(), os.environ.get(NONCE_VARIABLE, "") or _made)
