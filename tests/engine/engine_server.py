"""The real engine, on a unix socket of its own, for any room's tests.

    with serving({"p@1": tiny_policy(tmp_path / "p@1")}) as engine:
        engine.client.post("/v1/chat/completions", json={"model": "p@1", ...})

Importing it needs no torch; making a policy and serving do.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Served:
    """A running engine."""

    socket: Path
    client: httpx.Client
    """Of this engine: paths alone are enough."""
    pid: int
    log: Path

    @property
    def url(self) -> str:
        """As a worker is told where an engine is."""
        return f"unix://{self.socket}"


def tiny_policy(folder: Path, words: Sequence[str] | None = None, seed: int = 0) -> Path:
    """A policy with random weights: one token a byte, or one token for each of `words`."""
    from offing_engine.random_policy import create_random_policy

    create_random_policy(folder, words, seed=seed)
    return folder


@contextmanager
def serving(
    policies: Mapping[str, Path], *options: str, port: int | None = None, stop_seconds: float = 30.0
) -> Generator[Served]:
    """Starts `offing engine serve` with `policies` and waits until it answers; stops it at the end.

    `port`: instead of on a unix socket it listens there, on loopback.
    """
    with tempfile.TemporaryDirectory(prefix="offing-engine-", ignore_cleanup_errors=True) as work:
        here = Path(work)
        ready, log, socket = here / "ready", here / "log", here / "sock"
        where = ("--socket", str(socket)) if port is None else ("--port", str(port))
        named = [part for name, folder in policies.items() for part in ("--policy", f"{name}={folder}")]
        argv = [sys.executable, "-m", "offing.cli", "engine", "serve", *where, *named, *options]
        env = {**os.environ, "OFFING_READY_FILE": str(ready), "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as output:
            process = subprocess.Popen(argv, env=env, stdout=output, stderr=subprocess.STDOUT)
        try:
            _await(process, ready, log)
            base = "http://engine" if port is None else f"http://127.0.0.1:{port}"
            transport = httpx.HTTPTransport(uds=str(socket) if port is None else None)
            with httpx.Client(transport=transport, base_url=base, timeout=60.0) as client:
                yield Served(socket, client, process.pid, log)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(stop_seconds)
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], ready: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if ready.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"the engine did not start: {log.read_text(errors='replace')[-3000:]}")
