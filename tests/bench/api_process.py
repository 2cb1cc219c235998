"""An API process of a checkout."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from offing.local import ServerUrls
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.bench.ratios import cpu_seconds

READY_SECONDS = 180.0

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ApiProcess:
    """An API that answers on a loopback port."""

    port: int
    pid: int
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the process so far."""
        return cpu_seconds(self.pid)


@contextmanager
def open_api_process(
    checkout: Path,
    servers: ServerUrls,
    port: int,
    key: str,
    settings: Mapping[str, str] = NO_SETTINGS,
    graph_folder: Path | None = None,
) -> Generator[ApiProcess]:
    """Serve with the code of `checkout` until the block ends. `settings` are further environment variables.

    `graph_folder` is where graphs of benchmarks come from. `None` means the checkout.

    Raises RuntimeError if the process ends before it answers, and TimeoutError if it does not answer.
    """
    environment = os.environ | {
        "OFFING_APP_DATABASE_URL": servers.app_url,
        "REDIS_URL": servers.redis_url,
        "OFFING_PORT": str(port),
        "OFFING_HOST": "127.0.0.1",
        "OFFING_MAX_STREAMS_PER_TENANT": "1000",
        "OFFING_MAX_STREAMS_PER_KEY": "1000",
        "PYTHONPATH": os.pathsep.join(str(checkout / part) for part in ("backend", "graphs", "workers")),
        **settings,
    }
    command = [sys.executable, "-m", "offing.api"]
    with subprocess.Popen(
        command, cwd=graph_folder or checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until_ready(process, port)
            yield ApiProcess(port, process.pid, key)
        finally:
            process.terminate()


def wait_until_ready(process: subprocess.Popen[bytes], port: int, path: str = "/api/v1/health/ready") -> None:
    """Wait until a process answers at this path. Raises RuntimeError if it ends, and TimeoutError."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the process ended with status {process.returncode}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise TimeoutError(f"the server on port {port} did not answer within {READY_SECONDS:g} s")


async def create_key(database: Database) -> str:
    """Return a new API key of the local tenant."""
    return (await access.create_key(database, LOCAL_TENANT, "bench")).key
