"""What runs the code where it is confined, and hands back what it left: a script without imports of ours.

Reads a job from standard input, one line of JSON and then the files' bytes, and writes the same of the outcome to the
descriptor that the job names. It has no privilege that the code lacks, so whoever reads the outcome trusts none of it.
"""

import errno
import json
import os
import signal
import sys
from typing import Any

OUT_OF_MEMORY = 113
"""Exit status of code that ended for want of memory."""

LONGEST_NAME = 200

STARTED = b"started\n"
"""Written first, so that code which took us down is told from a sandbox that never began."""


def main() -> None:
    source = sys.stdin.buffer
    job: dict[str, Any] = json.loads(source.readline(1 << 20))
    folder = job["folder"]
    os.chdir(folder)
    given = {name: source.read(size) for name, size in job["files"]}
    code = source.read(job["code"]).decode()
    put(folder, given)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    result = job["result"]
    os.set_inheritable(result, False)
    os.write(result, STARTED)
    child = os.fork()
    if child == 0:
        os.closerange(3, 4096)
        _limit(job["limits"])
        run(code, [folder, *job["paths"]])
        return
    _, status = os.waitpid(child, 0)
    _end_the_rest()
    hand_back(result, folder, given, job["limits"], outcome(status))


def put(folder: str, given: dict[str, bytes]) -> None:
    """Write the files that the code is to find."""
    for name, data in given.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def _limit(limits: dict[str, int]) -> None:
    import resource

    seconds = int(limits["seconds"]) + 1
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 65536),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write that is too long fails with an error that can be read


def run(code: str, paths: list[str]) -> None:
    """Run the code as a program of its own, with a traceback that shows its lines and none of ours. Does not return."""
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
        sys.exit(OUT_OF_MEMORY if isinstance(error, MemoryError) else 1)
    sys.exit(0)


def start(arguments: list[str]) -> None:
    """Run the code that stands behind its folder; where the interpreter itself is what confines it."""
    folder, code = arguments
    os.chdir(folder)
    run(code, [folder])


def _end_the_rest() -> None:
    """Whatever the code has left running: nothing may write while its files are read."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def outcome(status: int) -> dict[str, Any]:
    """How the code ended, as `wait` tells it."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return {"exit": None, "killed": "time"}
    if code < 0:
        return {"exit": None, "killed": "crashed"}
    return {"exit": code, "killed": "memory" if code == OUT_OF_MEMORY else ""}


def hand_back(result: int, folder: str, given: dict[str, bytes], limits: dict[str, int], ended: dict[str, Any]) -> None:
    """Write how it ended and what lies in its workspace, and end."""
    files, left_out = collected(folder, given, limits)
    told = {**ended, "files": [[name, len(data)] for name, data in files], "left_out": left_out}
    with open(result, "wb") as sink:
        sink.write(json.dumps(told).encode() + b"\n")
        for _, data in files:
            sink.write(data)


def collected(
    folder: str, given: dict[str, bytes], limits: dict[str, int]
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Ordinary files that are new or changed, and names of those left out with why; no link is followed."""
    files: list[tuple[str, bytes]] = []
    left_out: list[str] = []
    total = 0
    for name in _names(folder):
        if len(left_out) >= limits["files"]:
            break
        data = _read(os.path.join(folder, name), limits["file"])
        if isinstance(data, bytes) and given.get(name) == data:
            continue
        if isinstance(data, bytes) and (len(files) >= limits["files"] or total + len(data) > limits["total"]):
            data = "too many files, or too much in them"
        if isinstance(data, str):
            left_out.append(name + ": " + data)
            continue
        files.append((name, data))
        total += len(data)
    return files, left_out


def _names(folder: str) -> list[str]:
    """Of everything but folders, in order, and no more than can be of use."""
    found: list[str] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__" and not os.path.islink(os.path.join(root, f)))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(root, name), folder).replace(os.sep, "/")
            if len(path) <= LONGEST_NAME and path.isprintable():
                found.append(path)
        if len(found) > 1000:
            break
    return found


def _read(path: str, most: int) -> "bytes | str":
    """A file's bytes, or why it does not come back."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return "it is a link" if error.errno == errno.ELOOP else "it cannot be read"
    with open(handle, "rb") as file:
        known = os.fstat(file.fileno())
        if known.st_mode & 0o170000 != 0o100000:
            return "it is no ordinary file"
        if known.st_size > most:
            return "it is larger than a file may be"
        return file.read(most)


if __name__ == "__main__":
    main()
