"""Model servers that the operator has accepted, in a file: runs may name them, and no key is sent there.

The only home of the file's form and of who may write it. It is read at each look, so what is accepted holds at once for
every process that sees the file; `OFFING_ENGINE_SERVERS` names one that several machines share.
"""

import os
from collections.abc import Mapping
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
    """Raises Conflict for a file that others may write, InvalidInput for a line that is no address."""
    file = servers_file(env)
    if file is None:
        return frozenset()
    try:
        found, text = file.stat(), file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return frozenset()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise Conflict(f"{file} can be written by others than you.", f"Look at what it names, then: chmod 600 {file}")
    lines = [line.strip() for line in text.splitlines()]
    return frozenset(server_named(line, str(file)) for line in lines if line and not line.startswith("#"))


def accept(env: Mapping[str, str], address: str) -> ApiBase:
    """Adds a server. Raises InvalidInput for an address that is none."""
    server = server_named(address, "ADDRESS")
    _write(env, accepted_servers(env) | {server})
    return server


def withdraw(env: Mapping[str, str], address: str) -> bool:
    """Takes a server away. False: it was not accepted. Raises InvalidInput for an address that is none."""
    server, known = server_named(address, "ADDRESS"), accepted_servers(env)
    _write(env, known - {server})
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


def _write(env: Mapping[str, str], servers: frozenset[ApiBase]) -> None:
    file = servers_file(env)
    if file is None:
        raise InvalidInput(SERVERS, "is not set, and there is no OFFING_HOME", "Set one of them.")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
        written.write(_HEAD + "".join(sorted(f"{server}\n" for server in servers)))
    draft.replace(file)
