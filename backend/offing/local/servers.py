"""Addresses of Postgres and of the key-value server for one home: given, embedded, or run by another process.

The only home of the search order. `local_servers` is what everything that needs no worker uses (tests, benchmarks,
`offing migrate`); `stack` builds the whole product on `running_servers`.
"""

import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from offing.core.errors import InvalidInput, Unavailable
from offing.local.datadir import Door, Layout, Lock, Note, clear, prepare, read_note, write_note
from offing.local.keyvalue import KeyValue
from offing.local.logs import kept_small
from offing.local.postgres import OWNER, Postgres
from offing.local.programs import Program
from offing.local.supervisor import START_SECONDS, Say, Supervisor, silent
from offing.settings import Settings

APP_ROLE = "offing_app"
"""The role that migrations create for the application: no superuser, no owner, bound by row-level security."""


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
    engine_url: str = ""
    """Where the workers ask policies. Empty: nowhere."""


def embedded_programs(settings: Settings, paths: Layout, *, durable: bool = True) -> list[Program]:
    """The servers that `settings` does not name, to be run here."""
    wanted: list[Program] = []
    if settings.redis_url is None:
        wanted.append(KeyValue(paths, durable=durable))
    if settings.database_url is None:
        wanted.append(Postgres(paths, durable=durable))
    return wanted


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
    part = take_part(paths)
    if isinstance(part, Guest):
        say("using the servers that are already running")
        with part.door:
            yield addresses(settings, part.paths)
        return
    supervisor = Supervisor(say)
    with Door(paths.door) as door, running_servers(settings, paths, part, supervisor, durable=durable):
        yield addresses(settings, paths)
        wait_for_guests(door, say)


@dataclass(frozen=True, slots=True)
class Guest:
    """The right to use servers that another process runs; it waits for us before it stops them."""

    note: Note
    paths: Layout
    """Ours, with the sockets of the process that runs them."""
    door: Door


def take_part(paths: Layout) -> Lock | Guest:
    """The lock of this home, now ours, or a place among the guests of the process that has it.

    Raises Unavailable when that process gets no server up in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        lock = Lock(paths.lock)
        if lock.acquire():
            return lock
        door = Door(paths.door)
        door.enter()
        note = read_note(paths)
        if note is not None:
            return Guest(note, Layout(paths.home, Path(note.run)), door)
        door.leave()
        time.sleep(0.05)
    raise Unavailable(f"Another process runs {paths.home} but its servers did not come up. `offing down` stops it.")


@contextmanager
def running_servers(
    settings: Settings, paths: Layout, lock: Lock, supervisor: Supervisor, *, durable: bool = True
) -> Generator[None]:
    """The servers of this home under `supervisor`, which stops all it runs when the block ends; gives `lock` back."""
    try:
        with kept_small(paths.logs, round(settings.log_megabytes * 1e6), settings.log_files):
            supervisor.start(embedded_programs(settings, paths, durable=durable))
            write_note(paths, Note(os.getpid(), str(paths.run), supervisor.names, engine_url=settings.engine_url))
            yield
    finally:
        supervisor.stop()
        clear(paths)
        lock.release()


def wait_for_guests(door: Door, say: Say = silent) -> None:
    """Returns when nobody else uses our servers, and lets nobody in until `door` is left."""
    if door.close_behind_the_last():
        return
    say("another offing command uses these servers; waiting for it (Ctrl-C stops them now)")
    while not door.close_behind_the_last():
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
    if not paths.app_password.exists():
        draft = paths.app_password.with_name(f"app-password.{os.getpid()}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
        with suppress(FileExistsError):  # another process was first, and its password stands
            os.link(draft, paths.app_password)
        draft.unlink()
    return paths.app_password.read_text(encoding="ascii")
