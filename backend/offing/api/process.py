"""One process that serves the API and the web UI; `python -m offing.api` runs it."""

import asyncio
import os
import resource
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from offing import environment
from offing.api.app import create_app
from offing.core.errors import InvalidInput, OffingError
from offing.garbage_collection import configure_garbage_collection
from offing.http_server import ClientLimits, ClientRegistry, build_protocol
from offing.models.api_base import is_loopback
from offing.settings import Settings, load_settings
from offing.telemetry.logs import setup_logs
from offing.telemetry.tracing import setup_tracing, shutdown_tracing

SHUTDOWN_TIMEOUT_SECONDS = 5

MAX_SOCKET_MESSAGE_BYTES = 16 * 1024 * 1024
"""Maximum size of a message of a WebSocket client, the same as that of a graph's state."""

RESERVED_FILE_DESCRIPTORS = 256
"""File descriptors reserved besides connections: for the database, Redis, libraries and documents that are
being ingested.
"""


class Server(uvicorn.Server):
    """A uvicorn server that reports when it is ready and closes event streams when it stops."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready_file: Path | None) -> None:
        super().__init__(config)
        self._offing, self._ready_file = app, ready_file
        self._own_loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[object] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        await super().startup(sockets)  # pyright: ignore[reportArgumentType]
        self._own_loop = asyncio.get_running_loop()
        if self.started and self._ready_file is not None:
            draft = self._ready_file.with_name(f"{self._ready_file.name}.{os.getpid()}")
            draft.write_text(str(os.getpid()))
            draft.replace(self._ready_file)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._own_loop is not None and hasattr(self._offing.state, "dependencies"):
            self._own_loop.call_soon_threadsafe(self._offing.state.dependencies.bus.close_subscribers)


def check_not_remote(settings: Settings, environment: Mapping[str, str]) -> None:
    """Raise InvalidInput for an address that other machines can reach, unless the operator has allowed it."""
    if not is_loopback(settings.host) and environment.get("OFFING_ALLOW_REMOTE") != "1":
        raise InvalidInput(
            "OFFING_HOST",
            f"other machines can reach {settings.host}, and traffic to it is not encrypted",
            "Use 127.0.0.1, or put a TLS proxy in front and set OFFING_ALLOW_REMOTE=1 and OFFING_ALLOWED_HOSTS.",
        )
    if settings.langgraph_without_key and not is_loopback(settings.host):
        raise InvalidInput(
            "OFFING_LANGGRAPH_WITHOUT_KEY",
            f"other machines can reach {settings.host}",
            "Leave it out, and send an API key of `offing key create` with each request.",
        )


def serve(settings: Settings, environment: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT arrives."""
    check_not_remote(settings, environment)
    hosts = environment.get("OFFING_ALLOWED_HOSTS", "").split(",")
    ready_file = environment.get("OFFING_READY_FILE")
    app = create_app(settings, hosts=hosts)
    configure_garbage_collection()
    raise_open_file_limit(settings.max_connections + RESERVED_FILE_DESCRIPTORS)
    config = build_server_config(app, settings)
    Server(config, app, Path(ready_file) if ready_file else None).run(open_sockets(config, settings))


def open_sockets(config: uvicorn.Config, settings: Settings) -> list[socket.socket] | None:
    """Return the sockets of both ports. `None` means that there is only the port of `config`."""
    if settings.langgraph_port is None:
        return None
    second = uvicorn.Config(config.app, host=settings.host, port=settings.langgraph_port, log_config=None)
    return [config.bind_socket(), second.bind_socket()]


def build_server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Return the uvicorn configuration for `app`: strict requests, time limits and a limited number of connections."""
    limits = ClientLimits(max_connections=settings.max_connections, max_half_open=settings.max_unfinished_requests)
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=build_protocol(ClientRegistry(limits)),  # pyright: ignore[reportArgumentType]
        ws="websockets-sansio",
        ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_SECONDS,
    )


def raise_open_file_limit(file_count: int) -> None:
    """Raise the limit on open files of this process to `file_count`, or to the highest value that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = file_count if hard == resource.RLIM_INFINITY else min(file_count, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def main() -> int:
    setup_logs("console" if sys.stderr.isatty() else "json")
    setup_tracing("offing-api")
    try:
        serve(load_settings(), environment.VARIABLES)
    except OffingError as error:
        print(f"offing: {error}", file=sys.stderr)
        return 2
    finally:
        shutdown_tracing()
    return 0
