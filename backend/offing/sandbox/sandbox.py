"""The contract between a sandbox driver and its users: request and result."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from offing.sandbox.limits import DEFAULT_LIMITS, SandboxLimits


class KillReason(StrEnum):
    """Why code was stopped."""

    TIME = "time"
    """It ran or computed for longer than allowed."""
    MEMORY = "memory"
    """It used more memory than allowed, in one process or in all of them together."""
    OUTPUT = "output"
    """It printed far more than is kept."""
    FILES = "files"
    """It wrote more files or larger ones than allowed."""
    CRASHED = "crashed"
    """It killed its runner, by a signal or otherwise."""


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """An input or output file of the workspace."""

    name: str
    """Path within the workspace, with slashes."""
    data: bytes


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """Python source and the input files in its workspace, which is its working directory."""

    source: str
    files: Sequence[WorkspaceFile] = ()
    limits: SandboxLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The result of an execution. All of it was written by the code, so it is untrusted data."""

    exit_status: int | None
    """The exit status of the code. `None` if it was stopped."""
    stdout: str
    stderr: str
    files: Sequence[WorkspaceFile] = ()
    """Files that are new or changed."""
    skipped: Sequence[str] = ()
    """Names of files that were left out, each with the reason."""
    truncated: bool = False
    """Whether it printed more than is kept."""
    kill_reason: KillReason | None = None
    elapsed_seconds: float = 0.0


class SandboxUnavailableError(Exception):
    """`SandboxUnavailableError(reason)`: this driver cannot sandbox code on this machine, and has run none."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Sandbox(Protocol):
    """Runs code that can reach only its workspace."""

    @property
    def name(self) -> str: ...

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        """Run code. Raises SandboxUnavailableError, and no error for what the code does.

        If it is cancelled, it ends everything that it started.
        """
        ...
