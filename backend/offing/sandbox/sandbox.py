"""What is run, within which bounds, and what came of it: the contract between a driver and those who use it.

The only home of the bounds' defaults. Knows no driver.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

MB = 1 << 20


class Killed(StrEnum):
    """Why code was stopped, or had to stop."""

    TIME = "time"
    """It ran, or computed, for longer than allowed."""
    MEMORY = "memory"
    """It wanted more memory than allowed, in one process or in all of them together."""
    OUTPUT = "output"
    """It printed far more than is kept."""
    FILES = "files"
    """It wrote more files, or larger ones, than allowed."""
    CRASHED = "crashed"
    """It took down what runs it, by a signal or otherwise."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run."""

    seconds: float = 30.0
    """Of the clock on the wall; processor time has the same bound in each process."""
    memory: int = 1024 * MB
    """Bytes: address space of each process, and resident memory of all together."""
    processes: int = 32
    """Threads count."""
    text: int = 64 * 1024
    """Bytes of standard output that are kept, and the same of standard error; at 16 times as many it is stopped."""
    file: int = 8 * MB
    """Bytes of one file."""
    files: int = 16
    """Files that come back."""
    total: int = 32 * MB
    """Bytes of all files that may lie in the workspace, and that come back."""


DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class File:
    """A file that is put into the workspace, or that was found there."""

    name: str
    """Path within the workspace, with slashes."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Code:
    """Python source and what it is to find in its workspace, which is its working folder."""

    source: str
    files: Sequence[File] = ()
    limits: Limits = DEFAULT


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it. All of it was written by the code, and is to be taken as data from outside."""

    exit: int | None
    """The status that the code ended with. None: it was stopped."""
    stdout: str
    stderr: str
    files: Sequence[File] = ()
    """Files that are new or changed."""
    left_out: Sequence[str] = ()
    """Names of files that did not come back, each with why."""
    cut: bool = False
    """It printed more than is kept."""
    killed: Killed | None = None
    seconds: float = 0.0


class CannotRun(Exception):
    """`CannotRun(reason)`: this driver cannot confine code on this machine, and has run none."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Sandbox(Protocol):
    """Runs code that can reach nothing but its workspace."""

    @property
    def name(self) -> str: ...

    async def run(self, code: Code) -> Ran:
        """Raises CannotRun, and nothing else for what the code does. Ends all that it started when it is cancelled."""
        ...
