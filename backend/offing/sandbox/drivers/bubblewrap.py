"""Code under the machine's own Python, in namespaces of its own that bubblewrap makes.

The only home of bubblewrap's flags. The code sees read-only libraries, an empty workspace in memory, and nothing else:
no file of the machine, no process but its own, no network, no variable, no terminal, no rights.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import orjson

from offing.sandbox import inside
from offing.sandbox.confined import Command, confined, judged
from offing.sandbox.control_group import ControlGroup, control_group
from offing.sandbox.interpreter import PROGRAM, ROOT, Interpreter, interpreter
from offing.sandbox.sandbox import MB, CannotRun, Code, Limits, Ran
from offing.sandbox.seccomp import MACHINES, program
from offing.sandbox.watching import too_much

WORK, PACKAGES, NOBODY = "/work", "/packages", "65534"

LAUNCHER = str(Path(__file__).with_name("launch.py"))

PLACES = "/tmp/"
"""Where the launcher shows what only root can reach."""

ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": f"{ROOT}/lib",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": f"{ROOT}/bin",
    "TZ": "UTC",
}

NEEDED = "--disable-userns"
"""Came with bubblewrap 0.8; without it the code could make itself root of a namespace of its own."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`packages`: a folder of packages for this Python that code may import. None: the standard library alone."""

    packages: Path | None = None
    python: Interpreter = field(default_factory=interpreter)

    @property
    def name(self) -> str:
        return "bubblewrap"

    async def run(self, code: Code) -> Ran:
        async with control_group(code.limits) as group:
            return judged(await self._run(code, group), group)

    async def _run(self, code: Code, group: ControlGroup | None) -> Ran:
        argv, places = _placed(_flags(code.limits, self._shown(), self.python, bubblewrap()))
        source, sink = os.pipe()
        os.write(sink, program())  # far less than a pipe holds
        os.close(sink)
        with_filter = [str(source) if argument == "SECCOMP" else argument for argument in argv]
        groups = group.members if group is not None else []
        told = {"argv": with_filter, "places": places, "parent": os.getpid(), "groups": groups}
        plan = orjson.dumps(told).decode()
        command = Command(
            argv=(sys.executable, "-I", "-S", LAUNCHER, plan),
            environment=_libraries(),
            folder=WORK,
            watch=partial(too_much, limits=code.limits, folders=(WORK, "/tmp", "/dev/shm")),
            paths=(PACKAGES,) if self.packages else (),
            descriptors=(source,),
        )
        return await confined(command, code)

    def _shown(self) -> Sequence[tuple[str, str]]:
        if self.packages is None:
            return self.python.shown
        if not self.packages.is_dir():
            raise CannotRun(f"OFFING_SANDBOX_PACKAGES: {self.packages} is not a folder")
        if os.geteuid() == 0 and self.packages.stat().st_mode & 0o005 != 0o005:
            raise CannotRun(f"OFFING_SANDBOX_PACKAGES: only root may read {self.packages}; chmod -R o+rX it")
        return [*self.python.shown, (str(self.packages.resolve()), PACKAGES)]


def bubblewrap() -> str:
    """The program's path. Raises CannotRun where there is none that can be used, and says why."""
    if sys.platform != "linux":
        raise CannotRun("it needs Linux")
    if platform.machine() not in MACHINES:
        raise CannotRun(f"its filter of system calls is not written for {platform.machine()}")
    found = shutil.which("bwrap")
    if found is None:
        raise CannotRun("the program bwrap is not installed; install the package bubblewrap")
    if NEEDED not in _options(found):
        raise CannotRun(f"{found} is too old; it needs bubblewrap 0.8 or later")
    return found


@cache
def _options(program: str) -> str:
    """What it says of itself."""
    try:
        told = subprocess.run([program, "--help"], env=_libraries(), capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotRun(f"{program} cannot be started: {error}") from None
    return told.stdout + told.stderr


def _libraries() -> dict[str, str]:
    """Return the environment in which bwrap itself starts."""
    return {name: value for name in ("LD_LIBRARY_PATH",) if (value := os.environ.get(name))}


def _flags(limits: Limits, shown: Sequence[tuple[str, str]], python: Interpreter, bwrap: str) -> list[str]:
    """Everything up to the program. What is shown stands after `--ro-bind`."""
    flags = [bwrap, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    flags += ["--unshare-cgroup", "--disable-userns", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"]
    flags += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--seccomp", "SECCOMP"]
    for source, place in shown:
        flags += ["--ro-bind", source, place]
    for target, place in python.links:
        flags += ["--symlink", target, place]
    for place in python.hidden:
        flags += ["--tmpfs", place, "--remount-ro", place]
    if os.path.isfile("/etc/ld.so.cache"):
        flags += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    flags += ["--proc", "/proc", "--dev", "/dev"]
    for place, size in ((WORK, limits.total), ("/tmp", limits.total), ("/dev/shm", 16 * MB)):
        flags += ["--size", str(size), "--tmpfs", place]
    flags += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]
    for name, value in ENVIRONMENT.items():
        flags += ["--setenv", name, value]
    return [*flags, "--", PROGRAM, "-I", "-S", "-B", "-c", _script()]


def _script() -> str:
    return Path(inside.__file__).read_text("utf-8")


def _placed(flags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """For root: what is shown comes from places that nobody can reach, and what each stands for."""
    if os.geteuid() != 0:
        return list(flags), {}
    places, argv = dict[str, str](), list(flags)
    for at, flag in enumerate(flags):
        if flag == "--ro-bind":
            place = f"{PLACES}{len(places)}"
            places[place], argv[at + 1] = flags[at + 1], place
    return argv, places
