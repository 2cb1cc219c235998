"""URLs of Postgres and the key-value server of a data directory.

The servers are configured, embedded, or run by another process. `open_servers` is for everything
that needs no worker, such as tests, benchmarks and `offing migrate`. `stack` builds the whole stack
on `run_servers`.
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
from offing.local.data_directory import (
    DataDirectory,
    ExclusiveLock,
    SharedLock,
    StackInfo,
    prepare_data_directory,
    read_stack_info,
    remove_runtime_files,
    write_stack_info,
)
from offing.local.keyvalue import KeyValueServer
from offing.local.logs import rotate_logs
from offing.local.postgres import OWNER_ROLE, PostgresServer
from offing.local.programs import Program
from offing.local.supervisor import START_TIMEOUT_SECONDS, MessageSink, Supervisor, discard_message
from offing.settings import Settings

APP_ROLE = "offing_app"
"""Role of the application: neither superuser nor owner, and subject to row-level security."""


@dataclass(frozen=True, slots=True)
class ServerUrls:
    """URLs of the servers. repr shows no field, because an external URL may contain a password."""

    owner_url: str = field(repr=False)
    """URL for the role that owns the tables. Only migrations use it."""
    app_url: str = field(repr=False)
    """URL for the application's role, which everything else uses."""
    redis_url: str = field(repr=False)
    """URL in redis-py's form, such as `unix://PATH?db=0` for the embedded server."""
    app_role: str = APP_ROLE
    app_password: str | None = field(default=None, repr=False)
    """Password that migrations set for the role. `None` means that the socket needs no password."""
    engine_url: str = ""
    """URL of the policy engine for the workers. Empty if there is none."""


def list_embedded_programs(settings: Settings, paths: DataDirectory, *, durable: bool = True) -> list[Program]:
    """Return the embedded servers for those that `settings` do not name."""
    programs: list[Program] = []
    if settings.redis_url is None:
        programs.append(KeyValueServer(paths, durable=durable))
    if settings.database_url is None:
        programs.append(PostgresServer(paths, durable=durable))
    return programs


@contextmanager
def open_servers(
    settings: Settings, *, durable: bool = True, say: MessageSink = discard_message
) -> Generator[ServerUrls]:
    """Open Postgres and a key-value server until the block ends.

    Servers that `settings` name are used. The others are started, or shared with another process of the
    same data directory. The process that has started them waits at the end for those that share them.
    """
    paths = prepare_data_directory(settings.home)
    if settings.database_url and settings.redis_url:
        yield get_server_urls(settings, paths)
        return
    part = join_or_lock(paths)
    if isinstance(part, SharedStack):
        say("using the servers that are already running")
        with part.users_lock:
            yield get_server_urls(settings, part.paths)
        return
    supervisor = Supervisor(say)
    with SharedLock(paths.users_lock) as users_lock, run_servers(settings, paths, part, supervisor, durable=durable):
        yield get_server_urls(settings, paths)
        wait_for_users(users_lock, say)


@dataclass(frozen=True, slots=True)
class SharedStack:
    """Right to use the servers of another process, which waits for this process before it stops them."""

    info: StackInfo
    paths: DataDirectory
    """Paths of this process, with the sockets of the process that runs the servers."""
    users_lock: SharedLock


def join_or_lock(paths: DataDirectory) -> ExclusiveLock | SharedStack:
    """Return the exclusive lock, or a shared stack if another process has the lock.

    Raises Unavailable if the servers of that process are not ready in time.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        lock = ExclusiveLock(paths.lock)
        if lock.acquire():
            return lock
        users_lock = SharedLock(paths.users_lock)
        users_lock.acquire()
        info = read_stack_info(paths)
        if info is not None:
            return SharedStack(info, DataDirectory(paths.root, Path(info.run)), users_lock)
        users_lock.release()
        time.sleep(0.05)
    raise Unavailable(f"Another process uses {paths.root}, but its servers did not start. Stop it with `offing down`.")


@contextmanager
def run_servers(
    settings: Settings, paths: DataDirectory, lock: ExclusiveLock, supervisor: Supervisor, *, durable: bool = True
) -> Generator[None]:
    """Run the servers under `supervisor` until the block ends, then stop its programs and release `lock`."""
    try:
        with rotate_logs(paths.logs, round(settings.max_log_megabytes * 1e6), settings.max_log_files):
            supervisor.start(list_embedded_programs(settings, paths, durable=durable))
            write_stack_info(
                paths, StackInfo(os.getpid(), str(paths.socket_dir), supervisor.names, engine_url=settings.engine_url)
            )
            yield
    finally:
        supervisor.stop()
        remove_runtime_files(paths)
        lock.release()


def wait_for_users(users_lock: SharedLock, say: MessageSink = discard_message) -> None:
    """Wait until no other process uses the servers. New users wait until `users_lock` is released."""
    if users_lock.try_close():
        return
    say("another offing command uses these servers; waiting for it (Ctrl-C stops them now)")
    while not users_lock.try_close():
        time.sleep(0.1)


def get_server_urls(settings: Settings, paths: DataDirectory) -> ServerUrls:
    """Return the URLs of the servers of `settings` and `paths`, whether or not they run."""
    redis = settings.redis_url.get_secret_value() if settings.redis_url else KeyValueServer(paths).url
    if settings.database_url is None:
        embedded = PostgresServer(paths)
        return ServerUrls(owner_url=embedded.url(OWNER_ROLE), app_url=embedded.url(APP_ROLE), redis_url=redis)
    owner = settings.database_url.get_secret_value()
    app = settings.app_database_url.get_secret_value() if settings.app_database_url else _derive_app_url(owner, paths)
    login = urlsplit(app)
    return ServerUrls(owner, app, redis, unquote(login.username or APP_ROLE), unquote(login.password or "") or None)


def _derive_app_url(owner_url: str, paths: DataDirectory) -> str:
    """Return `owner_url` with the name and generated password of the application's role."""
    parts = urlsplit(owner_url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise InvalidInput("DATABASE_URL", "is not a postgresql:// address", "Use postgresql://USER@HOST/NAME.")
    host = parts.netloc.rpartition("@")[2]
    login = f"{APP_ROLE}:{quote(_get_app_password(paths), safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{host}"))


def _get_app_password(paths: DataDirectory) -> str:
    """Return the application role's password for an external Postgres.

    It is created once and readable by this user only.
    """
    if not paths.app_password.exists():
        draft = paths.app_password.with_name(f"app-password.{os.getpid()}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
        with suppress(FileExistsError):  # another process was first; use its password
            os.link(draft, paths.app_password)
        draft.unlink()
    return paths.app_password.read_text(encoding="ascii")
