"""Paths of a data directory, and the lock of the process that runs its stack.

Data, the lock and the stack info are in the data directory, so that terminals with different
temporary folders use the same lock. Sockets are in a folder with a short path that only this user
can open, because the path of a socket must stay under 108 bytes. The stack info contains no
secrets.
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

from offing import environment
from offing.core.errors import Conflict, InvalidInput

MAX_BASE_BYTES = 60
"""Maximum length of the base folder. With our suffix it must fit the path of a socket: 104 bytes on
macOS, 108 on Linux.
"""


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Paths of one data directory."""

    root: Path
    socket_dir: Path

    @property
    def postgres_data(self) -> Path:
        return self.root / "pg"

    @property
    def keyvalue_data(self) -> Path:
        return self.root / "kv"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def app_password(self) -> Path:
        """File with the application role's password for an external Postgres.

        The embedded one needs no password.
        """
        return self.root / "app-password"

    @property
    def postgres_sockets(self) -> Path:
        return self.socket_dir / "pg"

    @property
    def keyvalue_socket(self) -> Path:
        return self.socket_dir / "kv" / "kv.sock"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def users_lock(self) -> Path:
        """File of the `SharedLock` for processes that use the servers."""
        return self.root / "guests"

    @property
    def engine_lock(self) -> Path:
        """Lock file held by the process that runs the policy engine."""
        return self.root / "engine-lock"

    @property
    def engine_users(self) -> Path:
        """File of the `SharedLock` for processes that use the policy engine."""
        return self.root / "engine-users"

    @property
    def stack_info(self) -> Path:
        return self.root / "up.json"


def locate_data_directory(home: Path) -> DataDirectory:
    """Return the paths of `home` without touching the file system."""
    resolved = home.expanduser().resolve()
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:12]
    return DataDirectory(root=resolved, socket_dir=_choose_runtime_base() / f"offing-{os.geteuid()}-{digest}")


def prepare_data_directory(home: Path) -> DataDirectory:
    """Create the folders of `home`, private to this user, and return the paths.

    Raises InvalidInput (OFFING_HOME) if a folder cannot be created or written, and Conflict if part of
    it belongs to another user.
    """
    paths = locate_data_directory(home)
    try:
        paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.logs.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            "OFFING_HOME", f"{paths.root} cannot be used ({error.strerror})", "Use a folder that you can write to."
        ) from error
    if os.geteuid() != 0:
        _check_owner(paths)
    _create_private_dir(paths.socket_dir)
    for folder in (paths.postgres_sockets, paths.keyvalue_socket.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    return paths


def _check_owner(paths: DataDirectory) -> None:
    """Raise Conflict if a path in the data directory belongs to another user.

    That happens, for example, after a start with sudo.
    """
    for path in (paths.root, *paths.root.iterdir()):
        if path.lstat().st_uid != os.geteuid():
            raise Conflict(
                f"{path} belongs to another user. Offing may have been started as root before.",
                f"Run `sudo chown -R $(id -u):$(id -g) {paths.root}`, or set OFFING_HOME to another folder.",
            )


def _choose_runtime_base() -> Path:
    """Return `$XDG_RUNTIME_DIR` if this user owns it and it is short enough, else the temporary folder.

    Under sudo, the variable names a folder of another user.
    """
    runtime = environment.VARIABLES.get("XDG_RUNTIME_DIR")
    is_owned = runtime and os.path.isdir(runtime) and os.stat(runtime).st_uid == os.geteuid()
    base = Path(runtime) if runtime and is_owned else Path(tempfile.gettempdir())
    return base if len(os.fsencode(base)) <= MAX_BASE_BYTES else Path("/tmp")


def _create_private_dir(folder: Path) -> None:
    """Create `folder`, or raise Conflict if another user could have created it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.geteuid():
        raise Conflict(f"{folder} belongs to another user.", "Delete it, or set TMPDIR to a folder that you own.")
    if status.st_mode & 0o066:
        folder.chmod(0o700)


class ExclusiveLock:
    """Exclusive lock on running the servers of a data directory.

    The kernel releases it when the process dies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Try to take the lock and return whether this process has it now."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _flock_with_retries(fd, fcntl.LOCK_EX):
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

    def find_holder(self) -> int | None:
        """Return the process id of the holder. `None` means that the lock is free."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _try_flock(fd, fcntl.LOCK_SH):
                return None
            return int(os.pread(fd, 20, 0) or b"0") or None
        finally:
            os.close(fd)


class SharedLock:
    """Shared lock of the processes that use servers of another process.

    The users hold it shared. The process that runs the servers takes it exclusively when no user is
    left. A new user then waits until that process has ended.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> "SharedLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock in shared mode. Waits while it is held exclusively."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def try_close(self) -> bool:
        """Try to take the lock exclusively. Return False while another process holds it."""
        return _try_flock(self._fd, fcntl.LOCK_EX)

    def release(self) -> None:
        os.close(self._fd)


def _flock_with_retries(fd: int, kind: int) -> bool:
    """Try several times, because a process that looks up the holder briefly has the lock."""
    for _ in range(5):
        if _try_flock(fd, kind):
            return True
        time.sleep(0.01)
    return False


def _try_flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class StackInfo:
    """Process id, paths and programs of the running stack, as the holder of the lock has stored them."""

    pid: int
    run: str
    """Folder of the sockets."""
    programs: tuple[str, ...] = ()
    """Names of the programs that are ready, including servers."""
    page_url: str | None = None
    """URL of the web UI. `None` means that it is not served."""
    engine_url: str = ""
    """URL of the policy engine of the workers. Empty if there is none."""


def write_stack_info(paths: DataDirectory, info: StackInfo) -> None:
    """Replace the stack info atomically."""
    draft = paths.stack_info.with_suffix(".new")
    draft.write_text(json.dumps(asdict(info)), encoding="utf-8")
    draft.replace(paths.stack_info)


def remove_runtime_files(paths: DataDirectory) -> None:
    """Remove the stack info and the folder of the sockets."""
    paths.stack_info.unlink(missing_ok=True)
    shutil.rmtree(paths.socket_dir, ignore_errors=True)


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending. Several processes may write to it, and `logs` may truncate it at any time."""
    return path.open("ab")


def read_log_tail(path: Path, max_bytes: int = 2000) -> str:
    """Return the last `max_bytes` bytes of a log for an error message. Empty if there is no log."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - max_bytes))
        return file.read().decode("utf-8", "replace").strip()


def read_stack_info(paths: DataDirectory) -> StackInfo | None:
    """Return the info of the running stack. `None` means that none is running or it is still starting."""
    holder = ExclusiveLock(paths.lock).find_holder()
    if holder is None:
        return None
    try:
        raw = json.loads(paths.stack_info.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    info = StackInfo(
        int(raw["pid"]), str(raw["run"]), tuple(raw["programs"]), raw["page_url"], raw.get("engine_url", "")
    )
    return info if info.pid == holder else None
