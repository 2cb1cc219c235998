"""Worker processes that are forked from one which has already imported all that a worker does.

Importing takes a worker some seconds of processor time, and the suite starts hundreds of them. From there on each is a
process like any other: with an environment, a folder, a session and a log of its own, to be killed, stopped and
continued. `offing up`, the supervisor's tests and the end-to-end tests start workers as users do.
"""

import ctypes
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

_preloaded = ["tests.workers.worker_imports"]

FROZEN_IMPORTS = "tests.workers.frozen_imports"
"""Imported after all others."""

IMPORT_PATH_VARIABLE = "TESTS_IMPORT_PATH"
"""The import path of the test process. Every forked process gets it, and remembers installed entry points by it; the
process from which they are forked begins with another one."""

PR_SET_PDEATHSIG = 1


def preload(*modules: str) -> None:
    """Have the one process from which all are forked import these modules too. Call it while a test module is imported,
    because a process that was forked already does not change it."""
    _preloaded.extend(modules)


def forks() -> ForkServerContext:
    """Return what starts processes that are forked. A test process has only one such process, so that all that anybody
    preloads is preloaded together."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_preloaded, FROZEN_IMPORTS])
    os.environ[IMPORT_PATH_VARIABLE] = os.pathsep.join(sys.path)
    return context


@dataclass(frozen=True)
class Forked:
    """What `subprocess.Popen` is for a program."""

    process: ForkServerProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(self.process.name, timeout or 0)
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()

    def terminate(self) -> None:
        self.process.terminate()


def fork(name: str, module: str, environment: Mapping[str, str], log: Path, folder: Path) -> Forked:
    """`python -m module` in a process that dies with us."""
    process = forks().Process(target=_run, args=(module, dict(environment), log, folder), name=name, daemon=True)
    process.start()
    return Forked(process)


def _run(module: str, environment: dict[str, str], log: Path, folder: Path) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.umask(0o077)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    output, nothing = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
    for taken, descriptor in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(taken, descriptor)
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
