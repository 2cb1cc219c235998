"""Process of the engine: its socket, policies and signals.

SIGTERM drains the engine: accepted requests are answered within `DRAIN_TIMEOUT_SECONDS`, and new
connections are rejected.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
import uvicorn

from offing.core.errors import Conflict, InvalidInput
from offing.http_server import ClientLimits, ClientRegistry, build_protocol
from offing.models.policy_folder import is_adapter, parse_version_name
from offing_engine.app import EngineApp
from offing_engine.scheduler import EngineScheduler, SchedulerLimits

CLIENT_LIMITS = ClientLimits(max_connections=4000, max_half_open=4000)
"""Workers send many requests at the same time, and all clients of a Unix socket have the same address."""

DRAIN_TIMEOUT_SECONDS = 25

POLL_SECONDS = 1.0
"""Interval between checks of the policy folder."""

log = logging.getLogger("offing.engine")


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Configuration of an engine process."""

    policies: Mapping[str, Path]
    """Policies to load at the start, full weights before adapters."""
    socket_path: Path | None
    """Socket that only this user can open. `None` means `host` and `port`."""
    host: str = "127.0.0.1"
    port: int = 8410
    token: str | None = field(default=None, repr=False)
    """Bearer token. Required for a port."""
    allow_remote: bool = False
    device: str | None = None
    """Device, such as cpu or cuda:1. `None` means the first GPU that torch can use, else the CPU."""
    threads: int | None = None
    """Number of CPU threads. `None` means all cores but one, which is left to other processes."""
    limits: SchedulerLimits = field(default_factory=SchedulerLimits)
    ready_file: Path | None = None
    """File that gets the process id when the engine accepts requests."""
    watched_dir: Path | None = None
    """Folder of policies. Versions that are added to it later are loaded, too. `None` means no folder."""


def serve_engine(serve_config: ServeConfig) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code.

    Raises InvalidInput and Conflict before serving.
    """
    torch.set_num_threads(serve_config.threads or max(1, (os.cpu_count() or 2) - 1))
    with _open_listener(serve_config) as listener:
        engine = EngineScheduler(_select_device(serve_config.device), serve_config.limits)
        for name, folder in order_policies(serve_config.policies):
            if folder.parent == serve_config.watched_dir:
                _load_discovered(engine, name, folder)
            else:
                policy = engine.load(name, folder)
                log.info("serving %s, weights %s", name, policy.hashes.weights[:12])
        stop = threading.Event()
        if serve_config.watched_dir is not None:
            watch = (engine, serve_config.watched_dir, stop)
            threading.Thread(target=_watch_folder, args=watch, name="offing-policies", daemon=True).start()
        app = EngineApp(engine, None if serve_config.socket_path else serve_config.token)
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType]
            http=build_protocol(ClientRegistry(CLIENT_LIMITS)),  # pyright: ignore[reportArgumentType]
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=DRAIN_TIMEOUT_SECONDS,
        )
        # uvicorn raises the signal again after draining, when nothing is left to do.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ignore_signal)
        _Server(config, serve_config.ready_file).run(sockets=[listener])
        stop.set()
        engine.stop()
    return 0


def _watch_folder(engine: EngineScheduler, folder: Path, stop: threading.Event) -> None:
    """Load versions when they appear in the folder."""
    modification_times: dict[str, float] = {}
    while not stop.wait(POLL_SECONDS):
        load_added(engine, folder, modification_times)


def load_added(engine: EngineScheduler, folder: Path, modification_times: dict[str, float]) -> None:
    """Load new versions in a folder of policies once. `modification_times` are from earlier calls.

    A version is tried again only when its folder has changed. So an unloaded version stays unloaded,
    and a version that cannot be loaded is reported once.
    """
    for name, path in order_policies(list_policy_folders(folder)):
        changed = path.stat().st_mtime
        is_unchanged = name in engine.policies or modification_times.get(name) == changed
        modification_times[name] = changed
        if is_unchanged:
            continue
        _load_discovered(engine, name, path)


def _load_discovered(engine: EngineScheduler, name: str, folder: Path) -> None:
    """Load a version. If it cannot be served, log the error and continue with others."""
    try:
        loaded = engine.load(name, folder)
        log.info("serving %s, weights %s", name, loaded.hashes.weights[:12])
    except Exception as error:
        log.warning("%s cannot be served: %s", name, error)


class _Server(uvicorn.Server):
    """uvicorn server that writes a file when it is ready."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self._ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready_file is not None:
            draft = self._ready_file.with_name(f"{self._ready_file.name}.{os.getpid()}")
            draft.write_text(str(os.getpid()))
            draft.replace(self._ready_file)


def list_policy_folders(folder: Path) -> dict[str, Path]:
    """Find every NAME@VERSION in a folder of policies. Raises InvalidInput."""
    if not folder.is_dir():
        raise InvalidInput(
            "OFFING_POLICY_DIR", f"{folder} is not a folder", "Use a folder that contains NAME@VERSION folders."
        )
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and "@" in path.name}


def parse_policy_args(pairs: Sequence[str]) -> dict[str, Path]:
    """Parse `NAME@VERSION=FOLDER` arguments. Raises InvalidInput."""
    policies: dict[str, Path] = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not equals:
            raise InvalidInput("--policy", f"{pair!r} has no folder", "Use --policy NAME@VERSION=FOLDER.")
        policies[parse_version_name(name)] = Path(folder)
    return policies


def order_policies(policies: Mapping[str, Path]) -> list[tuple[str, Path]]:
    """Order full weights first, because adapters need them."""
    return sorted(policies.items(), key=lambda one: is_adapter(one[1]))


def _ignore_signal(_number: int, _frame: object) -> None:
    """Ignore a signal that was already handled."""


def _select_device(device: str | None) -> torch.device:
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


@contextmanager
def _open_listener(config: ServeConfig) -> Generator[socket.socket]:
    if config.socket_path is None:
        with _bind_port(config) as listener:
            yield listener
        return
    with _bind_unix_socket(config.socket_path) as listener:
        own_inode = config.socket_path.stat().st_ino
        try:
            yield listener
        finally:
            if (
                config.socket_path.exists() and config.socket_path.stat().st_ino == own_inode
            ):  # only this engine's socket, not that of a later one
                config.socket_path.unlink()


def _bind_port(config: ServeConfig) -> socket.socket:
    if config.host not in ("127.0.0.1", "::1", "localhost") and not config.allow_remote:
        remedy = "Use 127.0.0.1, or set OFFING_ALLOW_REMOTE=1 and put a TLS proxy in front of the engine."
        raise InvalidInput("--host", f"{config.host} is reachable from other machines", remedy)
    if not config.token:
        raise InvalidInput(
            "OFFING_ENGINE_KEY", "is not set, but every local user can connect to a port", "Set it to a long secret."
        )
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((config.host, config.port))
    return listener


def _bind_unix_socket(path: Path) -> socket.socket:
    """Bind a socket that only this user can open. The socket of a killed engine is replaced."""
    if path.exists():
        _check_socket_unused(path)
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise InvalidInput(
            "--socket", f"{path} cannot be created ({error})", "Use a short path that you can write to."
        ) from error
    finally:
        os.umask(before)
    return listener


def _check_socket_unused(path: Path) -> None:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with probe:
        if probe.connect_ex(str(path)) == 0:
            raise Conflict(f"Another engine listens on {path}.", "Stop it or use another socket.")
