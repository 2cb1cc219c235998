"""The process in which code runs as WebAssembly.

Run as `wasi_process compile MODULE TARGET` or `wasi_process run COMPILED`. The module has no files except the
workspace, no sockets and no processes. This process also drops the privileges that it does not need, so that a
bug in the compiler alone does not allow an escape.
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

from offing.sandbox import runner_script
from offing.sandbox.drivers.launcher import join_control_groups
from offing.sandbox.seccomp import build_filter

NOBODY_UID = 65534

WORKSPACE = "/work"

START_SCRIPT = "import sys; ours = {'__name__': 'inside'}; exec(sys.argv[1], ours); ours['start'](sys.argv[2:])"
"""The program of the interpreter in the sandbox. The runner script and the code are its arguments."""

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2


def main(arguments: list[str]) -> None:
    match arguments:
        case ["compile", module, target]:
            compile_module(module, target)
        case ["run", compiled, *groups]:
            join_control_groups(groups)
            run_compiled(compiled)
        case _:
            sys.exit("compile MODULE TARGET, or run COMPILED")


def create_engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


def compile_module(module: str, target: str) -> None:
    """Compile a module to a file that only this user may read.

    It is written atomically, because its content is executed.
    """
    with open(module, "rb") as file:
        compiled = wasmtime.Module(create_engine(), file.read()).serialize()
    draft = f"{target}.{os.getpid()}"
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with open(handle, "wb") as file:
        file.write(compiled)
    os.replace(draft, target)


def run_compiled(compiled: str) -> None:
    job: dict[str, Any] = json.loads(sys.stdin.buffer.readline(1 << 20))
    os.chdir(job["folder"])
    files = {name: sys.stdin.buffer.read(size) for name, size in job["files"]}
    code = sys.stdin.buffer.read(job["code"]).decode()
    runner_script.write_inputs(".", files)
    ours = create_engine()
    module = wasmtime.Module.deserialize_file(ours, compiled)
    store, instance = _instantiate(ours, module, code, job["limits"])
    _drop_privileges(job["limits"])
    os.write(job["result"], runner_script.STARTED_MARK)
    ended = _run_instance(ours, store, instance, job["limits"]["timeout_seconds"])
    runner_script.write_result(job["result"], ".", files, job["limits"], ended)


def _instantiate(
    ours: wasmtime.Engine, module: wasmtime.Module, code: str, limits: dict[str, int]
) -> tuple[wasmtime.Store, wasmtime.Instance]:
    wasi = wasmtime.WasiConfig()
    with open(runner_script.__file__, encoding="utf-8") as file:
        wasi.argv = ["python", "-I", "-B", "-c", START_SCRIPT, file.read(), WORKSPACE, code]
    wasi.env = [("HOME", WORKSPACE), ("TZ", "UTC")]
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir(".", WORKSPACE)
    linker, store = wasmtime.Linker(ours), wasmtime.Store(ours)
    linker.define_wasi()
    store.set_wasi(wasi)
    store.set_limits(memory_size=limits["max_memory_bytes"], instances=1, memories=1, tables=8)
    store.set_epoch_deadline(1)
    return store, linker.instantiate(store, module)


def _run_instance(
    ours: wasmtime.Engine, store: wasmtime.Store, instance: wasmtime.Instance, timeout_seconds: int
) -> dict[str, Any]:
    timer = threading.Timer(timeout_seconds, ours.increment_epoch)
    timer.daemon = True
    timer.start()
    start = instance.exports(store)["_start"]
    assert isinstance(start, wasmtime.Func)
    try:
        start(store)
    except wasmtime.ExitTrap as ended:
        return {
            "exit_status": ended.code,
            "kill_reason": "memory" if ended.code == runner_script.OUT_OF_MEMORY_STATUS else "",
        }
    except wasmtime.Trap as trap:
        return {
            "exit_status": None,
            "kill_reason": "time" if trap.trap_code is wasmtime.TrapCode.INTERRUPT else "crashed",
        }
    finally:
        timer.cancel()
    return {"exit_status": 0, "kill_reason": ""}


def _drop_privileges(limits: dict[str, int]) -> None:
    """Drop privileges, limits and system calls that running the module does not need."""
    for kind, limit in (
        (resource.RLIMIT_CPU, limits["timeout_seconds"] + 5),
        (resource.RLIMIT_FSIZE, limits["max_file_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if os.geteuid() == 0:
        os.chown(".", NOBODY_UID, NOBODY_UID)
        for folder, folders, files in os.walk("."):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), NOBODY_UID, NOBODY_UID, follow_symlinks=False)
        os.setgroups([])
        os.setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        os.setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
    if sys.platform == "linux":
        _install_seccomp_filter()


def _install_seccomp_filter() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with suppress(KeyError):  # a machine without system call numbers here; the module is sandboxed without the filter
        lines = build_filter()
        text = ctypes.create_string_buffer(lines, len(lines))
        pair = _SockFprog(len(lines) // 8, ctypes.addressof(text))
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(pair), 0, 0) != 0:
            sys.exit(f"the system call filter was rejected: {os.strerror(ctypes.get_errno())}")


class _SockFprog(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))


if __name__ == "__main__":
    main(sys.argv[1:])
