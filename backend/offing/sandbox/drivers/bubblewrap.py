"""Run code with the machine's own Python in namespaces that bubblewrap creates.

The code sees read-only libraries and an empty workspace in memory. It sees no files of the machine, no
processes except its own, no network, no environment variables and no terminal, and it has no privileges.
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

from offing import environment
from offing.sandbox import runner_script
from offing.sandbox.control_group import ControlGroup, open_control_group
from offing.sandbox.interpreter import MOUNT_ROOT, PROGRAM_PATH, Interpreter, find_interpreter
from offing.sandbox.limits import MEBIBYTE, SandboxLimits
from offing.sandbox.resource_usage import find_excess
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, SandboxUnavailableError
from offing.sandbox.sandboxed_process import SandboxCommand, apply_memory_verdict, run_sandboxed
from offing.sandbox.seccomp import ARCHITECTURES, build_filter

WORK, PACKAGES, NOBODY = "/work", "/packages", "65534"

LAUNCHER_PATH = str(Path(__file__).with_name("launcher.py"))

MOUNT_DIR = "/tmp/"
"""Folder where the launcher mounts what only root can read."""

SANDBOX_ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": f"{MOUNT_ROOT}/lib",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": f"{MOUNT_ROOT}/bin",
    "TZ": "UTC",
}

REQUIRED_OPTION = "--disable-userns"
"""Option of bubblewrap 0.8 and later. Without it the code could become root of a nested user namespace."""


@dataclass(frozen=True, slots=True)
class BubblewrapDriver:
    """The bubblewrap driver.

    `packages` is a folder of packages that code may import; `None` means only the standard library.
    """

    packages: Path | None = None
    python: Interpreter = field(default_factory=find_interpreter)

    @property
    def name(self) -> str:
        return "bubblewrap"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        async with open_control_group(request.limits) as group:
            return apply_memory_verdict(await self._run(request, group), group)

    async def _run(self, request: ExecutionRequest, group: ControlGroup | None) -> ExecutionResult:
        argv, mount_points = _bind_flags_for_root(
            _build_flags(request.limits, self._readonly_mounts(), self.python, get_bubblewrap_path())
        )
        source, sink = os.pipe()
        os.write(sink, build_filter())  # far less than the capacity of a pipe
        os.close(sink)
        with_filter = [str(source) if argument == "SECCOMP" else argument for argument in argv]
        groups = group.member_files if group is not None else []
        settings = {"argv": with_filter, "places": mount_points, "parent": os.getpid(), "groups": groups}
        plan = orjson.dumps(settings).decode()
        command = SandboxCommand(
            argv=(sys.executable, "-I", "-S", LAUNCHER_PATH, plan),
            environment=_launch_environment(),
            folder=WORK,
            check_usage=partial(find_excess, limits=request.limits, folders=(WORK, "/tmp", "/dev/shm")),
            import_paths=(PACKAGES,) if self.packages else (),
            descriptors=(source,),
        )
        return await run_sandboxed(command, request)

    def _readonly_mounts(self) -> Sequence[tuple[str, str]]:
        if self.packages is None:
            return self.python.mounts
        if not self.packages.is_dir():
            raise SandboxUnavailableError(f"OFFING_SANDBOX_PACKAGES: {self.packages} is not a folder")
        if os.geteuid() == 0 and self.packages.stat().st_mode & 0o005 != 0o005:
            raise SandboxUnavailableError(
                f"OFFING_SANDBOX_PACKAGES: only root can read {self.packages}; run chmod -R o+rX on it"
            )
        return [*self.python.mounts, (str(self.packages.resolve()), PACKAGES)]


def get_bubblewrap_path() -> str:
    """Return the path of bwrap.

    Raises SandboxUnavailableError with the reason if it is missing or cannot be used.
    """
    if sys.platform != "linux":
        raise SandboxUnavailableError("it requires Linux")
    if platform.machine() not in ARCHITECTURES:
        raise SandboxUnavailableError(f"its system call filter does not support {platform.machine()}")
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailableError("the program bwrap is not installed; install the package bubblewrap")
    if REQUIRED_OPTION not in _read_options(path):
        raise SandboxUnavailableError(f"{path} is too old; version 0.8 or later is required")
    return path


@cache
def _read_options(program: str) -> str:
    """Return the options that the program lists in its help text."""
    try:
        completed = subprocess.run(
            [program, "--help"], env=_launch_environment(), capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxUnavailableError(f"{program} cannot be started: {error}") from None
    return completed.stdout + completed.stderr


def _launch_environment() -> dict[str, str]:
    """Return the environment in which bwrap itself starts."""
    return environment.select_variables(("LD_LIBRARY_PATH",))


def _build_flags(
    limits: SandboxLimits, mounts: Sequence[tuple[str, str]], python: Interpreter, bwrap: str
) -> list[str]:
    """Return the command line up to the program. Mounted paths follow `--ro-bind`."""
    flags = [bwrap, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    flags += ["--unshare-cgroup", "--disable-userns", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"]
    flags += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--seccomp", "SECCOMP"]
    for source, path in mounts:
        flags += ["--ro-bind", source, path]
    for target, path in python.links:
        flags += ["--symlink", target, path]
    for path in python.hidden_paths:
        flags += ["--tmpfs", path, "--remount-ro", path]
    if os.path.isfile("/etc/ld.so.cache"):
        flags += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    flags += ["--proc", "/proc", "--dev", "/dev"]
    for path, size in ((WORK, limits.max_total_bytes), ("/tmp", limits.max_total_bytes), ("/dev/shm", 16 * MEBIBYTE)):
        flags += ["--size", str(size), "--tmpfs", path]
    flags += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]
    for name, value in SANDBOX_ENVIRONMENT.items():
        flags += ["--setenv", name, value]
    return [*flags, "--", PROGRAM_PATH, "-I", "-S", "-B", "-c", _read_runner_script()]


def _read_runner_script() -> str:
    return Path(runner_script.__file__).read_text("utf-8")


def _bind_flags_for_root(flags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the flags and the mounts that root needs: bind sources become private paths, mapped to their real
    paths.
    """
    if os.geteuid() != 0:
        return list(flags), {}
    mount_points, argv = dict[str, str](), list(flags)
    for at, flag in enumerate(flags):
        if flag == "--ro-bind":
            mount_point = f"{MOUNT_DIR}{len(mount_points)}"
            mount_points[mount_point], argv[at + 1] = flags[at + 1], mount_point
    return argv, mount_points
