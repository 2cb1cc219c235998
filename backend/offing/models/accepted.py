"""Model servers that the operator has accepted, in a file: runs may name them, and no key is sent there.

The only home of the file's form and of who may write it. It is read at each look, so what is accepted holds at once for
every process that sees the file; `OFFING_ENGINE_SERVERS` names one that several machines share.
"""

import fcntl
import os
import pwd
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from offing.core.errors import Conflict, InvalidInput
from offing.models.addresses import ApiBase, is_loopback, parse_api_base
from offing.settings import default_home

SERVERS = "OFFING_ENGINE_SERVERS"
"""Environment: the file. Unset: `engine-servers` in OFFING_HOME."""

_HEAD = "# Model servers that runs may name, without a key. Written by `offing engine accept`.\n"


def servers_file(env: Mapping[str, str]) -> Path | None:
    """None: there can be none, because the environment names no folder."""
    if named := env.get(SERVERS, "").strip():
        return Path(named)
    if home := env.get("OFFING_HOME", "").strip():
        return Path(home).expanduser() / "engine-servers"
    if env is not os.environ:
        return None
    try:
        return default_home() / "engine-servers"
    except InvalidInput:
        return None


def accepted_servers(env: Mapping[str, str]) -> frozenset[ApiBase]:
    """Raises Conflict for a file that cannot be read or that others may write, InvalidInput for a line that is no
    address."""
    file = servers_file(env)
    if file is None:
        return frozenset()
    try:
        _check_owner(file)
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise _unusable(file, error) from error
    except UnicodeDecodeError as error:
        raise Conflict(f"{file} is no text in UTF-8.", "Remove it, and accept the servers anew.") from error
    lines = [line.strip() for line in text.splitlines()]
    return frozenset(server_named(line, str(file)) for line in lines if line and not line.startswith("#"))


def accept(env: Mapping[str, str], address: str) -> ApiBase:
    """Adds a server. Raises InvalidInput for an address that is none, Conflict as `accepted_servers`."""
    server = server_named(address, "ADDRESS")
    with _changed(env) as file:
        _write(file, accepted_servers(env) | {server})
    return server


def withdraw(env: Mapping[str, str], address: str) -> bool:
    """Takes a server away. False: it was not accepted. Raises as `accept`."""
    server = server_named(address, "ADDRESS")
    with _changed(env) as file:
        known = accepted_servers(env)
        _write(file, known - {server})
    return server in known


def is_accepted(base: ApiBase, env: Mapping[str, str]) -> bool:
    """Whether the operator has accepted the server of this base. Raises as `accepted_servers`."""
    return any(server.covers(_same_machine(base)) for server in accepted_servers(env))


def server_named(text: str, field: str) -> ApiBase:
    """An address as it is accepted: on this machine its port alone. Raises InvalidInput that names `field`."""
    base = parse_api_base(text.strip())
    if base is None:
        remedy = "Write http://HOST:PORT, such as http://127.0.0.1:11434."
        raise InvalidInput(field, f"{text.strip()!r} is no address of a model server", remedy)
    same = _same_machine(base)
    return replace(same, path=()) if is_loopback(same.host) else same


def _same_machine(base: ApiBase) -> ApiBase:
    """Loopback in one spelling, because a port there is accepted by whichever name."""
    return replace(base, host="127.0.0.1") if base.host in ("localhost", "::1") else base


def _check_owner(file: Path) -> None:
    found = file.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise Conflict(f"{file} belongs to another user, {_owner(file)}.", _ownership(file))
    if found.st_mode & 0o022:
        raise Conflict(f"{file} can be written by others than you.", f"Look at what it names, then: chmod 600 {file}")


def _unusable(file: Path, error: OSError) -> Conflict:
    place = file if file.exists() else file.parent
    problem = f"{file} cannot be used: {error.strerror}. {place} belongs to {_owner(place)}."
    return Conflict(
        problem, _ownership(place) if isinstance(error, PermissionError) else "Put that right, then try again."
    )


def _owner(place: Path) -> str:
    """Who owns it, by name where the user has one."""
    try:
        uid = place.stat().st_uid
    except OSError:
        return "nobody known"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _ownership(place: Path) -> str:
    return f"Look at what it names, then, as its owner or root: chown {os.geteuid()} {place}"


@contextmanager
def _changed(env: Mapping[str, str]) -> Generator[Path]:
    """The file, which nobody else changes meanwhile: what one of two reads would else be lost to the other's write."""
    file = servers_file(env)
    if file is None:
        raise InvalidInput(SERVERS, "is not set, and there is no OFFING_HOME", "Set one of them.")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(lock)
    except OSError as error:
        raise _unusable(file, error) from error


def _write(file: Path, servers: frozenset[ApiBase]) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
        written.write(_HEAD + "".join(sorted(f"{server}\n" for server in servers)))
    draft.replace(file)
