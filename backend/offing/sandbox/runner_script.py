"""The script that runs the code in the sandbox and returns its output files.

It imports no module of Offing.

It reads a job from standard input, one line of JSON followed by the bytes of the files, and writes the
outcome in the same form to the descriptor that the job names. It has the same privileges as the code, so
its outcome is untrusted.
"""

import errno
import json
import os
import signal
import sys
from typing import Any

OUT_OF_MEMORY_STATUS = 113
"""Exit status of code that ran out of memory."""

MAX_NAME_CHARS = 200

STARTED_MARK = b"started\n"
"""Written first, to distinguish code that killed the runner from a sandbox that never started."""


def main() -> None:
    source = sys.stdin.buffer
    job: dict[str, Any] = json.loads(source.readline(1 << 20))
    folder = job["folder"]
    os.chdir(folder)
    files = {name: source.read(size) for name, size in job["files"]}
    code = source.read(job["code"]).decode()
    write_inputs(folder, files)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    result = job["result"]
    os.set_inheritable(result, False)
    os.write(result, STARTED_MARK)
    child = os.fork()
    if child == 0:
        os.closerange(3, 4096)
        _apply_limits(job["limits"])
        run_code(code, [folder, *job["paths"]])
        return
    _, status = os.waitpid(child, 0)
    _kill_remaining_processes()
    write_result(result, folder, files, job["limits"], describe_exit(status))


def write_inputs(folder: str, inputs: dict[str, bytes]) -> None:
    """Write the input files into the workspace."""
    for name, data in inputs.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def _apply_limits(limits: dict[str, int]) -> None:
    import resource

    seconds = int(limits["timeout_seconds"]) + 1
    for kind, limit in (
        (resource.RLIMIT_AS, limits["max_memory_bytes"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["max_file_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits["max_processes"]),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 65536),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        resource.setrlimit(kind, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write that is too long fails with an ordinary error


def run_code(code: str, paths: list[str]) -> None:
    """Run the code as a separate program, with a traceback that shows only its own lines. Does not return."""
    import linecache
    import traceback

    linecache.cache["main.py"] = (len(code), None, code.splitlines(True), "main.py")
    sys.path[:0] = paths
    sys.argv = ["main.py"]
    main_module = type(sys)("__main__")
    main_module.__dict__["__file__"] = "main.py"
    sys.modules["__main__"] = main_module
    try:
        exec(compile(code, "main.py", "exec"), main_module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        behind = error.__traceback__.tb_next if error.__traceback__ else None
        try:
            traceback.print_exception(type(error), error, behind)
        except MemoryError:
            os.write(2, b"MemoryError\n")
        sys.exit(OUT_OF_MEMORY_STATUS if isinstance(error, MemoryError) else 1)
    sys.exit(0)


def start(arguments: list[str]) -> None:
    """Run the code that follows its folder in the arguments. Used where the interpreter itself is the sandbox."""
    folder, code = arguments
    os.chdir(folder)
    run_code(code, [folder])


def _kill_remaining_processes() -> None:
    """Kill all processes that the code has left running, so that nothing writes while its files are read."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def describe_exit(status: int) -> dict[str, Any]:
    """Return how the code ended, from the status of `wait`."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return {"exit_status": None, "kill_reason": "time"}
    if code < 0:
        return {"exit_status": None, "kill_reason": "crashed"}
    return {"exit_status": code, "kill_reason": "memory" if code == OUT_OF_MEMORY_STATUS else ""}


def write_result(
    result: int, folder: str, inputs: dict[str, bytes], limits: dict[str, int], exit_info: dict[str, Any]
) -> None:
    """Write how the code ended and the files of its workspace, and exit."""
    files, skipped = collect_outputs(folder, inputs, limits)
    header = {**exit_info, "files": [[name, len(data)] for name, data in files], "skipped": skipped}
    with open(result, "wb") as sink:
        sink.write(json.dumps(header).encode() + b"\n")
        for _, data in files:
            sink.write(data)


def collect_outputs(
    folder: str, inputs: dict[str, bytes], limits: dict[str, int]
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return regular files that are new or changed, and the names of those left out with the reason.

    Links are not followed.
    """
    files: list[tuple[str, bytes]] = []
    skipped: list[str] = []
    total = 0
    for name in _list_names(folder):
        if len(skipped) >= limits["max_files"]:
            break
        data = _read_output(os.path.join(folder, name), limits["max_file_bytes"])
        if isinstance(data, bytes) and inputs.get(name) == data:
            continue
        if isinstance(data, bytes) and (
            len(files) >= limits["max_files"] or total + len(data) > limits["max_total_bytes"]
        ):
            data = "too many files, or too much in them"
        if isinstance(data, str):
            skipped.append(name + ": " + data)
            continue
        files.append((name, data))
        total += len(data)
    return files, skipped


def _list_names(folder: str) -> list[str]:
    """Return the names of everything except folders, in order, up to a limit."""
    paths: list[str] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__" and not os.path.islink(os.path.join(root, f)))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(root, name), folder).replace(os.sep, "/")
            if len(path) <= MAX_NAME_CHARS and path.isprintable():
                paths.append(path)
        if len(paths) > 1000:
            break
    return paths


def _read_output(path: str, max_bytes: int) -> "bytes | str":
    """Return the bytes of a file, or why it is left out."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return "it is a link" if error.errno == errno.ELOOP else "it cannot be read"
    with open(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_mode & 0o170000 != 0o100000:
            return "it is no ordinary file"
        if status.st_size > max_bytes:
            return "it is larger than a file may be"
        return file.read(max_bytes)


if __name__ == "__main__":
    main()
