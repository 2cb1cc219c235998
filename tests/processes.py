"""Whether a process that a test has seen is still there."""

import psutil


def alive(process: psutil.Process) -> bool:
    """One that ended is not, whether or not anybody has asked about it yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
