"""The engine as a process: its socket, its policies, its signals.

The only home of where it listens and who may. SIGTERM drains: requests that were taken are answered, for at most
`DRAIN_SECONDS`; new connections are refused.
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
from offing.http_server import ClientLimits, Clients, protocol_for
from offing_engine.app import App
from offing_engine.folder import is_adapter, version_name
from offing_engine.scheduler import Engine, Limits

CONNECTIONS = ClientLimits(connections=4000, half_open=4000)
"""Workers ask for many answers at once, and on a unix socket all of them have one address."""

DRAIN_SECONDS = 25

WATCH_SECONDS = 1.0
"""Between looks at the folder of policies."""

log = logging.getLogger("offing.engine")


@dataclass(frozen=True, slots=True)
class Serving:
    """What a process serves, and where."""

    policies: Mapping[str, Path]
    """Loaded at the start, full weights before adapters."""
    unix: Path | None
    """A socket that only this user reaches. None: `host` and `port`."""
    host: str = "127.0.0.1"
    port: int = 8410
    token: str | None = field(default=None, repr=False)
    """Needed on a port."""
    allow_remote: bool = False
    device: str | None = None
    """Such as cpu or cuda:1. None: the first GPU that torch can use, else the CPU."""
    threads: int | None = None
    """None: all cores but one, which the rest of the machine needs."""
    limits: Limits = field(default_factory=Limits)
    ready_file: Path | None = None
    """Gets the pid when requests are taken."""
    watched: Path | None = None
    """A folder of policies: versions that are added to it later are loaded too. None: none is looked for."""


def serve(serving: Serving) -> int:
    """Serves until SIGTERM or SIGINT. The exit code. Raises InvalidInput and Conflict before anything is served."""
    torch.set_num_threads(serving.threads or max(1, (os.cpu_count() or 2) - 1))
    with _listening(serving) as listener:
        engine = Engine(_device(serving.device), serving.limits)
        for name, folder in ordered(serving.policies):
            if folder.parent == serving.watched:
                _load_found(engine, name, folder)
            else:
                policy = engine.load(name, folder)
                log.info("serving %s, weights %s", name, policy.hashes.weights[:12])
        stop = threading.Event()
        if serving.watched is not None:
            watch = (engine, serving.watched, stop)
            threading.Thread(target=_watch, args=watch, name="offing-policies", daemon=True).start()
        app = App(engine, None if serving.unix else serving.token)
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType]
            http=protocol_for(Clients(CONNECTIONS)),  # pyright: ignore[reportArgumentType]
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        # uvicorn hands the signal on when it has drained; nothing is left to do then.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _nothing)
        _Server(config, serving.ready_file).run(sockets=[listener])
        stop.set()
        engine.stop()
    return 0


def _watch(engine: Engine, folder: Path, stop: threading.Event) -> None:
    """Loads versions as they appear."""
    seen: dict[str, float] = {}
    while not stop.wait(WATCH_SECONDS):
        load_added(engine, folder, seen)


def load_added(engine: Engine, folder: Path, seen: dict[str, float]) -> None:
    """One look at a folder of policies. `seen`: when each was last changed, as the looks before found it.

    What was tried is tried again only when it has changed: one that was unloaded stays away, and one that cannot be
    loaded is told once.
    """
    for name, path in ordered(found_policies(folder)):
        changed = path.stat().st_mtime
        known = name in engine.policies or seen.get(name) == changed
        seen[name] = changed
        if known:
            continue
        _load_found(engine, name, path)


def _load_found(engine: Engine, name: str, folder: Path) -> None:
    """One that cannot be served is told, and keeps no other from being served."""
    try:
        policy = engine.load(name, folder)
        log.info("serving %s, weights %s", name, policy.hashes.weights[:12])
    except Exception as error:
        log.warning("%s cannot be served: %s", name, error)


class _Server(uvicorn.Server):
    """uvicorn that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self._ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready_file is not None:
            draft = self._ready_file.with_name(f"{self._ready_file.name}.{os.getpid()}")
            draft.write_text(str(os.getpid()))
            draft.replace(self._ready_file)


def found_policies(folder: Path) -> dict[str, Path]:
    """Every NAME@VERSION in a folder of policies. Raises InvalidInput."""
    if not folder.is_dir():
        raise InvalidInput("OFFING_POLICIES", f"{folder} is not a folder", "Name a folder of NAME@VERSION folders.")
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir() and "@" in path.name}


def named_policies(pairs: Sequence[str]) -> dict[str, Path]:
    """`NAME@VERSION=FOLDER` as given on a command line. Raises InvalidInput."""
    named: dict[str, Path] = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not equals:
            raise InvalidInput("--policy", f"{pair!r} names no folder", "Use --policy NAME@VERSION=FOLDER.")
        named[version_name(name)] = Path(folder)
    return named


def ordered(policies: Mapping[str, Path]) -> list[tuple[str, Path]]:
    """Full weights first, since adapters need them."""
    return sorted(policies.items(), key=lambda one: is_adapter(one[1]))


def _nothing(_number: int, _frame: object) -> None:
    """A signal that has been dealt with."""


def _device(asked: str | None) -> torch.device:
    return torch.device(asked or ("cuda" if torch.cuda.is_available() else "cpu"))


@contextmanager
def _listening(serving: Serving) -> Generator[socket.socket]:
    if serving.unix is None:
        with _port(serving) as listener:
            yield listener
        return
    with _unix(serving.unix) as listener:
        ours = serving.unix.stat().st_ino
        try:
            yield listener
        finally:
            if serving.unix.exists() and serving.unix.stat().st_ino == ours:  # not that of an engine after this one
                serving.unix.unlink()


def _port(serving: Serving) -> socket.socket:
    if serving.host not in ("127.0.0.1", "::1", "localhost") and not serving.allow_remote:
        remedy = "Put a TLS proxy in front and set OFFING_ALLOW_REMOTE=1, or use 127.0.0.1."
        raise InvalidInput("--host", f"{serving.host} can be reached by other machines", remedy)
    if not serving.token:
        raise InvalidInput("OFFING_ENGINE_KEY", "is not set, and a port is open to every user", "Set a long secret.")
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((serving.host, serving.port))
    return listener


def _unix(path: Path) -> socket.socket:
    """A socket that only this user may connect to; one that a killed engine left behind is replaced."""
    if path.exists():
        _refuse_living(path)
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise InvalidInput(
            "--socket", f"{path} cannot be made ({error})", "Name a short path that you may write."
        ) from error
    finally:
        os.umask(before)
    return listener


def _refuse_living(path: Path) -> None:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with probe:
        if probe.connect_ex(str(path)) == 0:
            raise Conflict(f"Another engine listens on {path}.", "Stop it, or name another socket.")
