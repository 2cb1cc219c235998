"""Code of Offing compared with the library that could replace it: the measurements of docs/design/own-code.md.

Offing's own Parquet pages are deleted; that note says how they were measured. The libraries are in no lock file.
Install them into a separate folder and name the measurements:

    .venv/bin/pip install --target /tmp/peers yoyo-migrations pyseccomp circus
    PYTHONPATH=/tmp/peers .venv/bin/python -m tests.bench.libraries parquet imports migrations seccomp supervisor
"""

import io
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from offing.exports import parquet
from offing.exports.arrow import pa
from offing.local import open_servers
from offing.packaged_files import get_migrations_dir
from offing.sandbox import seccomp
from offing.services import versioned_imports
from offing.settings import Settings
from offing.storage.migrate import migrate

ROWS, TOKENS = 400, 5280

PROCESS = """
import langgraph.graph, offing.sdk, psutil, time
print(time.process_time(), psutil.Process().memory_info().rss)
"""

PEER_LOCK = """
import os, sys, yoyo
backend = yoyo.get_backend(sys.argv[1])
with backend.lock(timeout=1):
    backend.apply_migrations(backend.to_apply(yoyo.read_migrations(sys.argv[2])))
    sys.argv[3:] and os.kill(os.getpid(), 9)
"""

PEER_SUPERVISOR = """
from circus.arbiter import Arbiter
from circus.watcher import Watcher
Arbiter([Watcher("one", "sleep 60")], "tcp://127.0.0.1:25565", "tcp://127.0.0.1:25566").start()
"""


def compared(ways: dict[str, Callable[[], object]], repeats: int = 7) -> None:
    """Print the CPU time of each way, measured in turns: median, minimum and maximum."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, work in ways.items():
            began = time.process_time()
            work()
            taken[name].append(time.process_time() - began)
    for name, each in taken.items():
        print(f"  {name}: {statistics.median(each) * 1e3:.2f} ms ({min(each) * 1e3:.2f} to {max(each) * 1e3:.2f})")


def measure_parquet() -> None:
    """Write two million tokens in the columns of training rows."""
    draw = np.random.default_rng(0)
    random = {"token_ids": draw.integers(0, 150_000, ROWS * TOKENS), "entropy": draw.random(ROWS * TOKENS)}
    sampled = np.arange(ROWS * TOKENS) % 264 >= 200
    columns: dict[str, Any] = {
        name: (random.get(name, -random["entropy"]) * (sampled | (name == "token_ids"))).astype(kind.to_pandas_dtype())
        for name, kind in parquet.TOKEN_TYPES.items()
    }
    columns |= {"loss_mask": sampled, "span_kind": sampled.astype(np.int8)}
    columns |= {"turn_index": (np.arange(ROWS * TOKENS) // 264 % 20).astype(np.int16)}
    schema = pa.schema([pa.field(name, parquet.non_null_list(kind)) for name, kind in parquet.TOKEN_TYPES.items()])
    lists = [
        parquet.build_list_column(np.split(columns[name], ROWS), kind) for name, kind in parquet.TOKEN_TYPES.items()
    ]
    batch = pa.RecordBatch.from_arrays(lists, schema=schema)
    size = 0

    def pyarrow_alone() -> None:
        nonlocal size
        file = io.BytesIO()
        sink = parquet.ParquetSink(file, schema, lambda _: batch)
        sink.write([range(ROWS * TOKENS)])
        sink.close()
        size = len(file.getvalue())

    compared({"pyarrow": pyarrow_alone})
    print("  bytes:", size, "tokens:", ROWS * TOKENS)


def measure_imports() -> None:
    """Load a second version of a graph in this process. Compare with a process that imports what a graph needs."""
    with tempfile.TemporaryDirectory() as home:
        for version in ("a", "b"):
            package = Path(home, version, "harbour")
            package.mkdir(parents=True)
            (package / "__init__.py").write_text("import langgraph.graph, offing.sdk\nfrom harbour import tools\n")
            (package / "tools.py").write_text("def use():\n    from harbour import tools\n    return tools\n")
        loaded = [_load(Path(home, version), version) for version in ("a", "b")]
        print(f"  second version in this process: {loaded[1][0] * 1e3:.1f} ms, {loaded[1][1] / 1e6:+.0f} MB")
        sys.path.insert(0, str(Path(home, "a")))
        plain = import_module("harbour.tools").use
        calls = 100_000
        compared({f"{calls} imports of ours": lambda: [loaded[0][2]() for _ in range(calls)],
                  f"{calls} imports of Python": lambda: [plain() for _ in range(calls)]})  # fmt: skip
    completed = subprocess.run(
        [sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"  a process for it: {float(completed[0]):.1f} s of CPU, {int(completed[1]) / 1e6:.0f} MB")


def _load(folder: Path, version: str) -> tuple[float, int, Callable[[], object]]:
    began, held = time.process_time(), psutil.Process().memory_info().rss
    module: Any = versioned_imports.load_module(folder, ("harbour",), version * 64, "harbour")
    return time.process_time() - began, psutil.Process().memory_info().rss - held, module.tools.use


def measure_migrations() -> None:
    """Migrate new databases in turns, and kill the library while it holds its lock."""
    with (
        tempfile.TemporaryDirectory(prefix="offing-bench-") as home,
        open_servers(Settings(home=Path(home), database_url=None, redis_url=None), durable=False) as servers,
    ):
        folder, url, at = get_migrations_dir(), "", conninfo_to_dict(servers.owner_url)
        for nth in range(3):
            with psycopg.connect(servers.owner_url, autocommit=True) as owner:
                owner.execute(f"create database ours{nth} template template0".encode())
                owner.execute(f"create database peer{nth} template template0".encode())
            began = time.perf_counter()
            ours = make_conninfo(servers.owner_url, dbname=f"ours{nth}")
            migrate(ours, folder=folder, app_role=servers.app_role, app_password=servers.app_password)
            middle = time.perf_counter()
            who = f"{at['user']}:{quote(str(at.get('password') or ''), safe='')}"
            url = f"postgresql+psycopg://{who}@/peer{nth}?host={at['host']}&port={at.get('port') or 5432}"
            _run_peer(PEER_LOCK, url, str(folder))
            print(f"  ours {middle - began:.2f} s, yoyo {time.perf_counter() - middle:.2f} s with its start")
        _run_peer(PEER_LOCK, url, str(folder), "die")
        print("  after a kill:", _run_peer(PEER_LOCK, url, str(folder)).strip().splitlines()[-1])


def _run_peer(script: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True).stderr or "works"


def measure_seccomp() -> None:
    """Build the same filter, and list the calls that the installed libseccomp lacks."""
    peer: Any = import_module("pyseccomp")

    def theirs() -> bytes:
        created = peer.SyscallFilter(peer.ALLOW)
        checks = [("ioctl", 1, (seccomp.TIOCSTI, seccomp.TIOCLINUX)), ("fcntl", 1, seccomp.FILE_COMMANDS.values()),
                  ("setsockopt", 2, seccomp.SOCKET_OPTIONS.values())]  # fmt: skip
        for number, _ in seccomp.DENIED_CALLS.values():
            if number is not None:
                created.add_rule(peer.ERRNO(1), number)
        for call, argument, values in checks:
            for value in values:
                created.add_rule(peer.ERRNO(1), call, peer.Arg(argument, peer.MASKED_EQ, 0xFFFFFFFF, value))
        for bit in (1 << n for n in range(32) if seccomp.NEW_NAMESPACES >> n & 1):
            created.add_rule(peer.ERRNO(1), "clone", peer.Arg(0, peer.MASKED_EQ, bit, bit))
        created.add_rule(peer.ERRNO(38), "clone3")
        created.add_rule(peer.ERRNO(97), "socket")
        created.add_rule(peer.ERRNO(97), "socketpair", peer.Arg(0, peer.NE, 1))
        with tempfile.TemporaryFile() as file:
            created.export_bpf(file)
            file.seek(0)
            return file.read()

    compared({"ours": seccomp.build_filter, "libseccomp": theirs})
    print("  instructions:", len(seccomp.build_filter()) // 8, "and", len(theirs()) // 8)
    known = {n: peer.resolve_syscall(peer.Arch.NATIVE, n) for n, (number, _) in seccomp.DENIED_CALLS.items() if number}
    print("  unknown to the library:", sorted(name for name, number in known.items() if number < 0))


def measure_supervisor() -> None:
    """Kill the library's supervisor and check whether its program still runs."""
    peer = subprocess.Popen([sys.executable, "-c", PEER_SUPERVISOR], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not (children := psutil.Process(peer.pid).children()) and time.monotonic() < until:
        time.sleep(0.1)
    print(f"  circus holds {psutil.Process(peer.pid).memory_info().rss / 1e6:.0f} MB")
    peer.kill()
    peer.wait()
    time.sleep(1)
    print("  after its death its program", "runs" if any(child.is_running() for child in children) else "has ended")
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)


def main() -> None:
    for name in sys.argv[1:]:
        print(name, flush=True)
        globals()[f"measure_{name}"]()


if __name__ == "__main__":
    main()
