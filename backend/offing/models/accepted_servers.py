"""Model servers that the operator has accepted, stored in a file.

Runs may use them, and no key is sent to them. The file is read at every check, so a change applies
to all processes at once. `OFFING_ENGINE_SERVERS` names a file that several machines share.
"""

import fcntl
import os
import pwd
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from offing import environment
from offing.core.errors import Conflict, InvalidInput
from offing.models.api_base import ApiBase, is_loopback, parse_api_base
from offing.settings import default_home

ACCEPTED_SERVERS_VARIABLE = "OFFING_ENGINE_SERVERS"
"""Environment variable that names the file. Default: `engine-servers` in OFFING_HOME."""

_FILE_HEADER = "# Model servers that runs may name, without a key. Written by `offing engine accept`.\n"


def find_servers_file(env: Mapping[str, str]) -> Path | None:
    """Return the path of the file. `None` means that the environment names no folder for it."""
    if configured := env.get(ACCEPTED_SERVERS_VARIABLE, "").strip():
        return Path(configured)
    if home := env.get("OFFING_HOME", "").strip():
        return Path(home).expanduser() / "engine-servers"
    if env is not environment.VARIABLES:
        return None
    try:
        return default_home() / "engine-servers"
    except InvalidInput:
        return None


def list_accepted_servers(env: Mapping[str, str]) -> frozenset[ApiBase]:
    """Return the accepted servers.

    Raises Conflict if the file cannot be read or others may write it, and InvalidInput if a line is not
    an address.
    """
    file = find_servers_file(env)
    if file is None:
        return frozenset()
    try:
        _check_file_owner(file)
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise _unusable_file_error(file, error) from error
    except UnicodeDecodeError as error:
        raise Conflict(f"{file} is not UTF-8 text.", "Delete it and accept the servers again.") from error
    lines = [line.strip() for line in text.splitlines()]
    return frozenset(parse_server(line, str(file)) for line in lines if line and not line.startswith("#"))


def accept_server(env: Mapping[str, str], address: str) -> ApiBase:
    """Add a server.

    Raises InvalidInput if the address is not valid, and Conflict as `list_accepted_servers`.
    """
    server = parse_server(address, "ADDRESS")
    with _locked_file(env) as file:
        _write(file, list_accepted_servers(env) | {server})
    return server


def withdraw_server(env: Mapping[str, str], address: str) -> bool:
    """Remove a server and return whether it was accepted. Raises as `accept_server`."""
    server = parse_server(address, "ADDRESS")
    with _locked_file(env) as file:
        accepted = list_accepted_servers(env)
        _write(file, accepted - {server})
    return server in accepted


def is_accepted(base: ApiBase, env: Mapping[str, str]) -> bool:
    """Return whether the operator has accepted the server of this API base.

    Raises as `list_accepted_servers`.
    """
    return any(server.covers(_normalize_loopback(base)) for server in list_accepted_servers(env))


def parse_server(text: str, field: str) -> ApiBase:
    """Parse an address into its stored form. For an address of this machine, only the port matters.

    Raises InvalidInput that names `field`.
    """
    base = parse_api_base(text.strip())
    if base is None:
        remedy = "Use http://HOST:PORT, such as http://127.0.0.1:11434."
        raise InvalidInput(field, f"{text.strip()!r} is not the address of a model server", remedy)
    same = _normalize_loopback(base)
    return replace(same, path=()) if is_loopback(same.host) else same


def _normalize_loopback(base: ApiBase) -> ApiBase:
    """Return the base with one spelling of loopback, because acceptance covers all its names."""
    return replace(base, host="127.0.0.1") if base.host in ("localhost", "::1") else base


def _check_file_owner(file: Path) -> None:
    status = file.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise Conflict(f"{file} belongs to another user, {_owner_name(file)}.", _describe_ownership(file))
    if status.st_mode & 0o022:
        raise Conflict(
            f"Other users can write to {file}.", f"Check the servers that it names, then run: chmod 600 {file}"
        )


def _unusable_file_error(file: Path, error: OSError) -> Conflict:
    path = file if file.exists() else file.parent
    problem = f"{file} cannot be used: {error.strerror}. {path} belongs to {_owner_name(path)}."
    return Conflict(
        problem, _describe_ownership(path) if isinstance(error, PermissionError) else "Fix the cause and try again."
    )


def _owner_name(path: Path) -> str:
    """Return the owner of a file, by name if the user has one."""
    try:
        uid = path.stat().st_uid
    except OSError:
        return "an unknown user"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _describe_ownership(path: Path) -> str:
    return f"Check the servers that it names, then run as its owner or root: chown {os.geteuid()} {path}"


@contextmanager
def _locked_file(env: Mapping[str, str]) -> Generator[Path]:
    """Lock the file, so that two processes do not overwrite each other's changes."""
    file = find_servers_file(env)
    if file is None:
        raise InvalidInput(ACCEPTED_SERVERS_VARIABLE, "is not set, and there is no OFFING_HOME", "Set one of them.")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(lock)
    except OSError as error:
        raise _unusable_file_error(file, error) from error


def _write(file: Path, servers: frozenset[ApiBase]) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
        written.write(_FILE_HEADER + "".join(sorted(f"{server}\n" for server in servers)))
    draft.replace(file)
