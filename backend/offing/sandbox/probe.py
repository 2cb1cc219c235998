"""What an escape probe is: code that tries one way out of a sandbox, and how its outcome is judged.

The only home of what counts as contained. A probe prints `tried` when it came as far as trying and `reached` when it
got out; what must be stopped says by what. Knows no driver, and no way out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from offing.sandbox.sandbox import MB, Code, File, Killed, Limits, Ran

TRIED, REACHED = "tried", "reached"

SMALL = Limits(seconds=15, memory=256 * MB, processes=16, text=4096, file=1 * MB, files=4, total=4 * MB)


@dataclass(frozen=True, slots=True)
class Bait:
    """What lies on this machine for probes to reach."""

    secret: Path
    """A file that anybody may read."""
    port: int
    """Somebody listens there on loopback."""
    abstract: str
    """Name of a socket that somebody listens on, outside of any file system."""
    pid: int
    """A process of ours."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One way out."""

    name: str
    source: str
    stopped: Sequence[Killed] = ()
    """Endings that are as good as being refused. Empty: it must end by itself."""
    limits: Limits = SMALL

    def code(self, bait: Bait) -> Code:
        facts = f"SECRET, PORT, ABSTRACT, PID = {str(bait.secret)!r}, {bait.port}, {bait.abstract!r}, {bait.pid}\n"
        return Code(facts + COMMON + self.source, limits=self.limits)

    def problem(self, ran: Ran) -> str:
        """Why it was not contained. Empty: it was."""
        said = ran.stdout.split()
        if REACHED in said or any(REACHED.encode() in file.data for file in ran.files):
            return "it was reached"
        if ran.killed in self.stopped or (TRIED in said and ran.killed is None):
            return ""
        return f"it was not tried: {(ran.killed or ran.stderr.strip()[-200:] or 'nothing was said')}"


COMMON = f"""
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

WORKS = Probe(
    "it computes and hands files in and out",
    """
assert open("in.txt").read() == "41"
open("out.txt", "w").write(str(int(open("in.txt").read()) + 1))
tried()
""",
)


def works(ran: Ran) -> str:
    """Why ordinary code does not run. Empty: it does."""
    files = {file.name: file.data for file in ran.files}
    return "" if files == {"out.txt": b"42"} else WORKS.problem(ran) or "no file came back"


def ordinary(bait: Bait) -> Code:
    return replace(WORKS.code(bait), files=(File("in.txt", b"41"),))
