"""The process in which code runs as WebAssembly: `wasi_child compile MODULE TARGET`, or `wasi_child run COMPILED`.

The only home of wasmtime. The module has no file but the workspace, no socket and no process, whatever the code does;
this process gives up what it does not need besides, so that a fault of the compiler alone is no way out.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

import wasmtime

from offing.sandbox import inside
from offing.sandbox.drivers.launch import join
from offing.sandbox.seccomp import program

NOBODY = 65534

WORK = "/work"

START = "import sys; ours = {'__name__': 'inside'}; exec(sys.argv[1], ours); ours['start'](sys.argv[2:])"
"""What the interpreter inside is told to do; the script and the code are its arguments."""

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_FILTER = 2


def main(arguments: list[str]) -> None:
    match arguments:
        case ["compile", module, target]:
            compile_to(module, target)
        case ["run", compiled, *groups]:
            join(groups)
            run(compiled)
        case _:
            sys.exit("compile MODULE TARGET, or run COMPILED")


def engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


def compile_to(module: str, target: str) -> None:
    """Machine code of a module into a file that we alone may read, whole or not at all: whoever loads it runs it."""
    with open(module, "rb") as file:
        compiled = wasmtime.Module(engine(), file.read()).serialize()
    draft = f"{target}.{os.getpid()}"
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with open(handle, "wb") as file:
        file.write(compiled)
    os.replace(draft, target)


def run(compiled: str) -> None:
    job: dict[str, Any] = json.loads(sys.stdin.buffer.readline(1 << 20))
    os.chdir(job["folder"])
    given = {name: sys.stdin.buffer.read(size) for name, size in job["files"]}
    code = sys.stdin.buffer.read(job["code"]).decode()
    inside.put(".", given)
    ours = engine()
    module = wasmtime.Module.deserialize_file(ours, compiled)
    store, instance = _instance(ours, module, code, job["limits"])
    _give_up(job["limits"])
    os.write(job["result"], inside.STARTED)
    ended = _ended(ours, store, instance, job["limits"]["seconds"])
    inside.hand_back(job["result"], ".", given, job["limits"], ended)


def _instance(
    ours: wasmtime.Engine, module: wasmtime.Module, code: str, limits: dict[str, int]
) -> tuple[wasmtime.Store, wasmtime.Instance]:
    wasi = wasmtime.WasiConfig()
    with open(inside.__file__, encoding="utf-8") as file:
        wasi.argv = ["python", "-I", "-B", "-c", START, file.read(), WORK, code]
    wasi.env = [("HOME", WORK), ("TZ", "UTC")]
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir(".", WORK)
    linker, store = wasmtime.Linker(ours), wasmtime.Store(ours)
    linker.define_wasi()
    store.set_wasi(wasi)
    store.set_limits(memory_size=limits["memory"], instances=1, memories=1, tables=8)
    store.set_epoch_deadline(1)
    return store, linker.instantiate(store, module)


def _ended(ours: wasmtime.Engine, store: wasmtime.Store, instance: wasmtime.Instance, seconds: int) -> dict[str, Any]:
    timer = threading.Timer(seconds, ours.increment_epoch)
    timer.daemon = True
    timer.start()
    start = instance.exports(store)["_start"]
    assert isinstance(start, wasmtime.Func)
    try:
        start(store)
    except wasmtime.ExitTrap as ended:
        return {"exit": ended.code, "killed": "memory" if ended.code == inside.OUT_OF_MEMORY else ""}
    except wasmtime.Trap as trap:
        return {"exit": None, "killed": "time" if trap.trap_code is wasmtime.TrapCode.INTERRUPT else "crashed"}
    finally:
        timer.cancel()
    return {"exit": 0, "killed": ""}


def _give_up(limits: dict[str, int]) -> None:
    """Rights, limits and system calls that running the module does not need."""
    for kind, most in (
        (resource.RLIMIT_CPU, limits["seconds"] + 5),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if os.geteuid() == 0:
        os.chown(".", NOBODY, NOBODY)
        for folder, folders, files in os.walk("."):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if sys.platform == "linux":
        _refuse_calls()


def _refuse_calls() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with suppress(KeyError):  # a machine without numbers here; the module is confined without them
        lines = program()
        text = ctypes.create_string_buffer(lines, len(lines))
        pair = _Program(len(lines) // 8, ctypes.addressof(text))
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(pair), 0, 0) != 0:
            sys.exit(f"the filter of system calls was refused: {os.strerror(ctypes.get_errno())}")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))


if __name__ == "__main__":
    main(sys.argv[1:])
