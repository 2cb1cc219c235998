"""Addresses of Postgres and of the key-value server for one home: given, embedded, or run by another process.

The only home of the search order. `local_servers` is what everything short-lived uses (commands, tests, benchmarks);
`supervisor` builds on `Embedded` for the long-lived stack.
"""

import os
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from offing.core.errors import InvalidInput, Unavailable
from offing.local.datadir import Guest, Layout, Lock, Note, has_guests, prepare, read_note, write_note
from offing.local.keyvalue import KeyValue
from offing.local.postgres import OWNER, Postgres
from offing.local.processes import Child, wait_until
from offing.settings import Settings

APP_ROLE = "offing_app"
"""The role that migrations create for the application: no superuser, no owner, bound by row-level security."""

START_SECONDS = 60.0
"""How long a server may take to recover and answer."""

Say = Callable[[str], None]
"""Receives one line about what is being done, for a person."""


def silent(_: str) -> None:
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the servers are. No field is shown by repr, since an address from outside may carry a password."""

    owner_url: str = field(repr=False)
    """As the role that owns the tables: migrations alone."""
    app_url: str = field(repr=False)
    """As the application's role: everything else."""
    redis_url: str = field(repr=False)
    """In redis-py's form, `unix://PATH?db=0` for the embedded server."""
    app_role: str = APP_ROLE
    app_password: str | None = field(default=None, repr=False)
    """What migrations set as the role's password. None: the socket needs none."""


class Server(Protocol):
    """A program that we run and can tell to be ready."""

    name: str
    grace_seconds: float

    def prepare(self) -> None: ...
    def start(self) -> Child: ...
    def ready(self, child: Child) -> bool: ...
    def why_not(self) -> str: ...


class Embedded:
    """The servers of one home that this process runs; only for the holder of the home's lock."""

    def __init__(self, paths: Layout, settings: Settings, *, durable: bool = True, say: Say = silent) -> None:
        self.postgres = None if settings.database_url else Postgres(paths, durable=durable)
        self.keyvalue = None if settings.redis_url else KeyValue(paths, durable=durable)
        self.children: dict[str, Child] = {}
        self._paths, self._settings, self._say = paths, settings, say

    @property
    def programs(self) -> list[Server]:
        return [s for s in (self.keyvalue, self.postgres) if s is not None]

    def start(self) -> Servers:
        """Starts what is missing, both at once, and returns when both answer. Raises Unavailable with the log's end."""
        for server in self.programs:
            self._say(f"starting {server.name}")
            server.prepare()
            self.children[server.name] = server.start()
        for server in self.programs:
            self._await(server)
        return addresses(self._settings, self._paths)

    def restart(self, name: str) -> None:
        """Starts the server `name` again, whatever became of it, and returns when it answers."""
        server = next(s for s in self.programs if s.name == name)
        self.children[name].stop(server.grace_seconds)
        server.prepare()
        self.children[name] = server.start()
        self._await(server)

    def stop(self) -> None:
        """Stops both at once; the key-value server first, since nothing of value is in it."""
        for server in self.programs:
            if server.name in self.children:
                self.children[server.name].ask_to_stop()
        for server in self.programs:
            if server.name in self.children:
                self.children.pop(server.name).stop(server.grace_seconds)

    def _await(self, server: Server) -> None:
        child = self.children[server.name]
        if wait_until(lambda: server.ready(child), alive=child.alive, timeout_seconds=START_SECONDS):
            return
        child.stop(server.grace_seconds)
        if isinstance(server, KeyValue) and not server.emptied:
            self._say(f"{server.name} cannot read its data; starting it empty, which loses nothing")
            server.set_aside()
            self.children[server.name] = server.start()
            return self._await(server)
        raise Unavailable(f"{server.name} did not start. The end of its log:\n{server.why_not()}")


@contextmanager
def local_servers(settings: Settings, *, durable: bool = True, say: Say = silent) -> Generator[Servers]:
    """Postgres and a key-value server for as long as the block lasts.

    Those named in `settings` are used as they are; the others are started, or shared when another process already runs
    this home. The process that started them waits at the end for those that share them.
    """
    paths = prepare(settings.home)
    if settings.database_url and settings.redis_url:
        yield addresses(settings, paths)
        return
    lock = Lock(paths.lock)
    if not lock.acquire():
        with _as_guest(settings, paths, say) as servers:
            yield servers
        return
    embedded = Embedded(paths, settings, durable=durable, say=say)
    try:
        servers = embedded.start()
        write_note(paths, Note(pid=os.getpid(), run=str(paths.run)))
        yield servers
        _wait_for_guests(paths, say)
    finally:
        embedded.stop()
        paths.note.unlink(missing_ok=True)
        lock.release()


@contextmanager
def _as_guest(settings: Settings, paths: Layout, say: Say) -> Generator[Servers]:
    guest = Guest(paths.guests)
    try:
        say("using the servers that are already running")
        yield addresses(settings, Layout(paths.home, Path(_await_note(paths).run)))
    finally:
        guest.leave()


def _await_note(paths: Layout) -> Note:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        note = read_note(paths)
        if note is not None:
            return note
        time.sleep(0.05)
    raise Unavailable(f"Another process runs {paths.home} but its servers did not come up. `offing down` stops it.")


def _wait_for_guests(paths: Layout, say: Say) -> None:
    if has_guests(paths.guests):
        say("another offing command uses these servers; waiting for it (Ctrl-C stops them now)")
    while has_guests(paths.guests):
        time.sleep(0.1)


def addresses(settings: Settings, paths: Layout) -> Servers:
    """Where the servers of `settings` and `paths` are, whether or not they run."""
    redis = settings.redis_url.get_secret_value() if settings.redis_url else KeyValue(paths).url
    if settings.database_url is None:
        embedded = Postgres(paths)
        return Servers(owner_url=embedded.url(OWNER), app_url=embedded.url(APP_ROLE), redis_url=redis)
    owner = settings.database_url.get_secret_value()
    app = settings.app_database_url.get_secret_value() if settings.app_database_url else _app_url(owner, paths)
    login = urlsplit(app)
    return Servers(owner, app, redis, unquote(login.username or APP_ROLE), unquote(login.password or "") or None)


def _app_url(owner_url: str, paths: Layout) -> str:
    """`owner_url` with the application's role and its generated password in place of the owner's."""
    parts = urlsplit(owner_url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise InvalidInput("DATABASE_URL", "is not a postgresql:// address", "Write it as postgresql://USER@HOST/NAME.")
    place = parts.netloc.rpartition("@")[2]
    login = f"{APP_ROLE}:{quote(_app_password(paths), safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))


def _app_password(paths: Layout) -> str:
    """The application role's password for a Postgres from outside, made once and kept for this user's eyes alone."""
    try:
        fd = os.open(paths.app_password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return paths.app_password.read_text(encoding="ascii")
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32))
    return paths.app_password.read_text(encoding="ascii")
