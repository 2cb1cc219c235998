"""The folders of one installation, and the lock that says who runs it.

The only home of paths below `OFFING_HOME` and of the run folder. Data, the lock and the note of what is up live under
the home, so that two terminals with different temporary folders still meet at one lock. The sockets live in a
short-pathed folder that belongs to this user alone, because a socket's path must stay under 108 bytes however deep the
home is. Nothing secret is written to the note.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from offing.core.errors import Conflict, InvalidInput

LONGEST_BASE = 60
"""Bytes; what we add to it must still be a socket's path, 104 bytes on macOS and 108 on Linux."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of one home lies."""

    home: Path
    run: Path

    @property
    def postgres_data(self) -> Path:
        return self.home / "pg"

    @property
    def keyvalue_data(self) -> Path:
        return self.home / "kv"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def app_password(self) -> Path:
        """The application role's password for a Postgres from outside; the embedded one needs none."""
        return self.home / "app-password"

    @property
    def postgres_sockets(self) -> Path:
        return self.run / "pg"

    @property
    def keyvalue_socket(self) -> Path:
        return self.run / "kv" / "kv.sock"

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def door(self) -> Path:
        """See `Door`."""
        return self.home / "guests"

    @property
    def engine_lock(self) -> Path:
        """Held by the process that runs this home's policy engine."""
        return self.home / "engine-lock"

    @property
    def engine_users(self) -> Path:
        """A `Door` for the processes whose runs ask it."""
        return self.home / "engine-users"

    @property
    def note(self) -> Path:
        return self.home / "up.json"


def layout(home: Path) -> Layout:
    """The paths that belong to `home`; touches nothing."""
    resolved = home.expanduser().resolve()
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:12]
    return Layout(home=resolved, run=_runtime_base() / f"offing-{os.geteuid()}-{digest}")


def prepare(home: Path) -> Layout:
    """The paths of `home`, made where absent and private to this user.

    Raises InvalidInput (OFFING_HOME) when the home cannot be made or written, Conflict when part of it is another's.
    """
    paths = layout(home)
    try:
        paths.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.logs.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            "OFFING_HOME", f"{paths.home} cannot be used ({error.strerror})", "Point it to a folder that you may write."
        ) from error
    if os.geteuid() != 0:
        _refuse_foreign(paths)
    _private(paths.run)
    for folder in (paths.postgres_sockets, paths.keyvalue_socket.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    return paths


def _refuse_foreign(paths: Layout) -> None:
    """Says so when something in the home belongs to another user, as after one start with sudo."""
    for path in (paths.home, *paths.home.iterdir()):
        if path.lstat().st_uid != os.geteuid():
            raise Conflict(
                f"{path} belongs to another user; perhaps Offing was once started as root.",
                f"Run `sudo chown -R $(id -u):$(id -g) {paths.home}`, or set OFFING_HOME to another folder.",
            )


def _runtime_base() -> Path:
    """`$XDG_RUNTIME_DIR` where it is really ours (under sudo it is not), else the temporary folder, if short enough."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    ours = runtime and os.path.isdir(runtime) and os.stat(runtime).st_uid == os.geteuid()
    wanted = Path(runtime) if runtime and ours else Path(tempfile.gettempdir())
    return wanted if len(os.fsencode(wanted)) <= LONGEST_BASE else Path("/tmp")


def _private(folder: Path) -> None:
    """Makes `folder`, or refuses one that somebody else could have put there."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.geteuid():
        raise Conflict(f"{folder} belongs to somebody else.", "Remove it, or set TMPDIR to a folder of your own.")
    if found.st_mode & 0o066:
        folder.chmod(0o700)


class Lock:
    """The exclusive right to run the servers of one home; the kernel takes it back when the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """True when this process has the right now; False when another one has it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _flock_soon(fd, fcntl.LOCK_EX):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        self._fd = fd
        return True

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> int | None:
        """The pid that runs this home, or None when nothing does."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _flock(fd, fcntl.LOCK_SH):
                return None
            return int(os.pread(fd, 20, 0) or b"0") or None
        finally:
            os.close(fd)


class Door:
    """Who uses the servers that another process runs: guests hold it shared, and the host closes it when none is left.

    A guest that comes while it is closed waits until the host is gone.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def enter(self) -> None:
        """Waits while the door is closed."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def close_behind_the_last(self) -> bool:
        """True when no guest is inside, and none comes in any more; False while there is one."""
        return _flock(self._fd, fcntl.LOCK_EX)

    def leave(self) -> None:
        os.close(self._fd)


def _flock_soon(fd: int, kind: int) -> bool:
    """Tries a few times: somebody who only asks who holds the lock has it for an instant."""
    for _ in range(5):
        if _flock(fd, kind):
            return True
        time.sleep(0.01)
    return False


def _flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Note:
    """What the process that holds the lock has up. Paths and pids only."""

    pid: int
    run: str
    """The folder with the sockets."""
    programs: tuple[str, ...] = ()
    """Names of what runs and is ready, servers included."""
    page_url: str | None = None
    """Where the page answers; None while there is none."""
    engine_url: str = ""
    """Where the workers of that process ask policies. Empty: nowhere, or it has none."""


def write_note(paths: Layout, note: Note) -> None:
    """Replaces the note at once, so that a reader never sees half of one."""
    draft = paths.note.with_suffix(".new")
    draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
    draft.replace(paths.note)


def clear(paths: Layout) -> None:
    """Removes what only a running home needs: the note and the folder with the sockets."""
    paths.note.unlink(missing_ok=True)
    shutil.rmtree(paths.run, ignore_errors=True)


def open_log(path: Path) -> BinaryIO:
    """`path` for appending: more than one process may write to it, and it may be emptied at any time (`logs`)."""
    return path.open("ab")


def log_tail(path: Path, size: int = 2000) -> str:
    """The last `size` bytes of a log, for an error message; empty when there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read().decode("utf-8", "replace").strip()


def read_note(paths: Layout) -> Note | None:
    """The note of the process that runs this home; None when nothing does, or not far enough to have written one."""
    holder = Lock(paths.lock).holder()
    if holder is None:
        return None
    try:
        raw = json.loads(paths.note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    note = Note(int(raw["pid"]), str(raw["run"]), tuple(raw["programs"]), raw["page_url"], raw.get("engine_url", ""))
    return note if note.pid == holder else None
