"""`offing backup` and `offing restore`: the database and what lies beside it, in one file."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from offing.cli.hooks import migrate
from offing.core.errors import Conflict, InvalidInput
from offing.local.archive import extract, read_manifest, write_archive
from offing.local.background import status
from offing.local.datadir import prepare
from offing.local.pgtools import choose_tools, dump
from offing.local.pgtools import restore as restore_dump
from offing.local.policy import policies_folder
from offing.local.servers import Servers, local_servers
from offing.mcp.pins import pins_path
from offing.resources import migrations_dir
from offing.settings import Settings, load_settings

SESSIONS = ("app.login", "app.session")
"""Not in a backup: whoever had signed in does so again."""


def backup(file: Path | None) -> int:
    """Write a backup, also while everything runs. The exit code."""
    settings = load_settings()
    target = file or Path(datetime.now(UTC).strftime("offing-%Y%m%d-%H%M%S.backup"))
    if target.is_dir():
        raise InvalidInput("FILE", f"{target} is a folder", "Name a file in it.")
    with local_servers(settings) as servers:
        elsewhere = write_backup(settings, servers.owner_url, target)
    for label in elsewhere:
        print(f"not in the backup: the weights of {label}, which lie outside the folder of policies", file=sys.stderr)
    print(f"{target}  {target.stat().st_size / 1e6:.1f} MB")
    return 0


def write_backup(settings: Settings, owner_url: str, target: Path) -> list[str]:
    """Write a backup to `target`. The policy versions whose weights are not in it, since they lie elsewhere."""
    from offing.storage.backup import describe, policies_outside, without_password

    described = describe(owner_url)
    if not described.ledger:
        raise Conflict("The database holds no installation of Offing.", "Check OFFING_HOME or DATABASE_URL.")
    tools = choose_tools(described.server)
    policies = policies_folder(settings).resolve()
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        dumped = Path(work) / "database.dump"
        dump(tools, *without_password(owner_url), "app", dumped, SESSIONS)
        # After the dump, so that the files that its rows name are there by now.
        made = {"made_at": datetime.now(UTC), "offing": version("offing"), "tools": tools.major}
        write_archive(target, made | {"policies_folder": str(policies)} | asdict(described), dumped, _beside(settings))
    return policies_outside(owner_url, str(policies))


def _beside(settings: Settings) -> dict[str, Path]:
    """What lies outside the database and is needed again, by its name in a backup."""
    home = settings.home
    beside = {"policies": policies_folder(settings), "graphs": home / "graphs", "training": home / "training"}
    if settings.mcp is not None:
        beside |= {"mcp.toml": settings.mcp, "mcp.pins.json": pins_path(settings.mcp)}
    return beside


def restore(file: Path) -> int:
    """Bring a backup into an installation that holds nothing. The exit code."""
    settings = load_settings()
    manifest = read_manifest(file)
    refuse_newer(manifest)
    if (running := status(settings)).pid is not None:
        raise Conflict(f"Offing runs for this home (pid {running.pid}).", "Stop it with `offing down` first.")
    with local_servers(settings) as servers:
        read_backup(settings, servers, file, manifest)
    print(f"restored {file}, made {manifest['made_at']}. `offing up` starts it; runs that were under way go on.")
    return 0


def read_backup(settings: Settings, servers: Servers, file: Path, manifest: Mapping[str, Any]) -> None:
    """Bring a backup in. Raises Conflict where something is in its way, and changes nothing then."""
    beside = _beside(settings)
    if occupied := [path for path in beside.values() if path.is_dir() and any(path.iterdir())]:
        raise Conflict(f"{occupied[0]} is not empty.", "Restore into an OFFING_HOME that holds nothing yet.")
    with tempfile.TemporaryDirectory(dir=prepare(settings.home).home) as work:
        _restore_database(servers.owner_url, file, manifest, Path(work), policies_folder(settings).resolve())
        migrate(servers)
        for name, place in beside.items():
            _put_back(Path(work) / name, place)


def refuse_newer(manifest: Mapping[str, Any]) -> None:
    """Raises Conflict for a backup whose schema this version of the code does not know."""
    from offing.storage.migrate import migrations_in

    known = {migration.version: migration.sha256 for migration in migrations_in(migrations_dir())}
    unknown = [name for name, sha256, *_ in manifest["ledger"] if known.get(name) != sha256]
    if unknown:
        raise Conflict(
            f"The backup is of another version of Offing ({manifest['offing']}): it has {', '.join(unknown)}, "
            "which this version does not have.",
            f"Restore it with Offing {manifest['offing']} or a later one.",
        )


def _restore_database(url: str, file: Path, manifest: Mapping[str, Any], work: Path, policies_now: Path) -> None:
    from offing.storage import backup as database

    if (table := database.find_contents(url)) is not None:
        raise Conflict(
            f"The database is not empty: its table {table} has rows.",
            "Restore into a new OFFING_HOME, or an empty database (DATABASE_URL).",
        )
    if others := database.others_connected(url):
        raise Conflict(f"{others} other programs are connected to the database.", "Stop API and workers first.")
    server = database.major_of(url)
    if server < manifest["server"]:
        raise Conflict(
            f"The backup is of Postgres {manifest['server']}, and this server is Postgres {server}.",
            f"Restore into Postgres {manifest['server']} or later.",
        )
    dumped = extract(file, manifest, work)
    database.clear(url)
    restore_dump(choose_tools(max(server, manifest["tools"])), *database.without_password(url), dumped)
    policies = [database.Policy(**policy) for policy in manifest["policies"]]
    described = database.Described(manifest["server"], manifest["ledger"], policies)
    database.complete(url, described, (manifest["policies_folder"], str(policies_now)))


def _put_back(source: Path, target: Path) -> None:
    """Move a file or folder of the backup to where this installation looks for it; a file that is there stays."""
    if not source.exists():
        return
    if target.is_file():
        print(f"{target} stays as it is; the backup's is not used", file=sys.stderr)
        return
    if target.is_dir():
        target.rmdir()
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
