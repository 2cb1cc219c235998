"""Escape probes: code that tries one way out of a sandbox, and the check of its result.

A probe prints `tried` when it has tried and `reached` when it got out. A probe that must be stopped lists
the accepted kill reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from offing.sandbox.limits import MEBIBYTE, SandboxLimits
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, KillReason, WorkspaceFile

TRIED, REACHED = "tried", "reached"

PROBE_LIMITS = SandboxLimits(
    timeout_seconds=15,
    max_memory_bytes=256 * MEBIBYTE,
    max_processes=16,
    max_output_bytes=4096,
    max_file_bytes=1 * MEBIBYTE,
    max_files=4,
    max_total_bytes=4 * MEBIBYTE,
)


@dataclass(frozen=True, slots=True)
class ProbeTargets:
    """Targets on this machine that probes try to reach."""

    secret: Path
    """A file that every user may read."""
    port: int
    """A port on loopback with a listener."""
    abstract: str
    """Name of an abstract socket with a listener."""
    pid: int
    """A process of this user."""


@dataclass(frozen=True, slots=True)
class EscapeProbe:
    """One way out of a sandbox."""

    name: str
    source: str
    accepted_kills: Sequence[KillReason] = ()
    """Kill reasons that count as contained. Empty means that the probe must end normally."""
    limits: SandboxLimits = PROBE_LIMITS

    def build_request(self, targets: ProbeTargets) -> ExecutionRequest:
        facts = (
            f"SECRET, PORT, ABSTRACT, PID = {str(targets.secret)!r}, {targets.port}, {targets.abstract!r}, "
            f"{targets.pid}\n"
        )
        return ExecutionRequest(facts + PRELUDE + self.source, limits=self.limits)

    def find_problem(self, result: ExecutionResult) -> str:
        """Return why the probe was not contained. Empty if it was."""
        words = result.stdout.split()
        if REACHED in words or any(REACHED.encode() in file.data for file in result.files):
            return "it was reached"
        if result.kill_reason in self.accepted_kills or (TRIED in words and result.kill_reason is None):
            return ""
        return f"it was not tried: {(result.kill_reason or result.stderr.strip()[-200:] or 'no output')}"


PRELUDE = f"""
import os, sys, time
def attempt(what, *given, **named):
    try:
        return what(*given, **named)
    except (Exception, SystemExit):
        return None
def reached(): print({REACHED!r}, flush=True)
def tried(): print({TRIED!r}, flush=True)
def fork(): return os.fork() if hasattr(os, "fork") else None
def call(number, *given):
    "A system call by its number, by machine; None where it was refused."
    import ctypes, platform
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in given]
    at = ["x86_64", "aarch64"].index(platform.machine())
    found = libc.syscall(ctypes.c_long(number[at]), *given)
    return None if found < 0 else found
"""

SMOKE_TEST = EscapeProbe(
    "computation with input and output files",
    """
assert open("in.txt").read() == "41"
open("out.txt", "w").write(str(int(open("in.txt").read()) + 1))
tried()
""",
)


def find_smoke_test_problem(result: ExecutionResult) -> str:
    """Return why ordinary code does not run. Empty if it does."""
    files = {file.name: file.data for file in result.files}
    return "" if files == {"out.txt": b"42"} else SMOKE_TEST.find_problem(result) or "no file was returned"


def build_smoke_test(targets: ProbeTargets) -> ExecutionRequest:
    return replace(SMOKE_TEST.build_request(targets), files=(WorkspaceFile("in.txt", b"41"),))
