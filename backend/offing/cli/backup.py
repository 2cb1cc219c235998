"""`offing backup` and `offing restore`: the database and what lies beside it, in one file."""

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offing.cli.beside import gather, listed, places, put_back
from offing.cli.hooks import migrate
from offing.core.errors import Conflict, InvalidInput
from offing.local.archive import explained, extract, read_manifest, write_archive
from offing.local.background import status
from offing.local.datadir import layout, prepare
from offing.local.pgtools import choose_tools, dump
from offing.local.pgtools import restore as restore_dump
from offing.local.servers import Servers, local_servers
from offing.resources import migrations_dir
from offing.settings import Settings, load_settings

if TYPE_CHECKING:
    from offing.storage.backup import Moved, Seen

SESSIONS = ("app.login", "app.session")
"""Not in a backup: whoever had signed in does so again."""


def backup(file: Path | None) -> int:
    """Write a backup, also while everything runs. The exit code."""
    settings = load_settings()
    target = file or Path(datetime.now(UTC).strftime("offing-%Y%m%d-%H%M%S.backup"))
    if target.is_dir():
        raise InvalidInput("FILE", f"{target} is a folder", "Name a file in it.")
    with local_servers(settings) as servers:
        left_out = write_backup(settings, servers.owner_url, target)
    for what in left_out:
        print(f"not in the backup: {what}", file=sys.stderr)
    print(f"{target}  {target.stat().st_size / 1e6:.1f} MB")
    return 0


def write_backup(settings: Settings, owner_url: str, target: Path) -> list[str]:
    """Write a backup to `target`. What rows name that is not in it, in words."""
    from offing.storage.backup import describe, seen, without_password

    described = describe(owner_url)
    if not described.ledger:
        raise Conflict("The database holds no installation of Offing.", "Check OFFING_HOME or DATABASE_URL.")
    tools = choose_tools(described.server)
    with (
        explained("The backup was not made", "Mend that, and try again."),
        tempfile.TemporaryDirectory(dir=target.parent) as work,
        seen(owner_url) as view,
        tempfile.TemporaryDirectory(prefix=".backup-", dir=_near(settings, view) or work) as aside,
    ):
        found = gather(settings, view, Path(aside))
        dumped = Path(work) / "database.dump"
        address, password = without_password(owner_url)
        dump(tools, address, password, "app", dumped, snapshot=view.snapshot, leave_out=SESSIONS)
        made = {"made_at": datetime.now(UTC), "offing": version("offing"), "tools": tools.major}
        lay = {"policies_folder": str(places(settings)["policies"]), "home": str(layout(settings.home).home)}
        manifest = made | lay | {"addresses": found.addresses} | asdict(described)
        write_archive(target, manifest, dumped, found.entries)
    return found.left_out


def _near(settings: Settings, view: "Seen") -> Path | None:
    """On the same disk as the checkpoints, which then need not be copied to be kept. None: there are none here."""
    training = places(settings)["training"]
    return training if view.checkpoints and os.access(training, os.W_OK) else None


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
    beside = places(settings)
    with explained("The backup cannot be restored", "Mend that, and try again."), ExitStack() as undo:
        if occupied := [path for path in beside.values() if listed(path)]:
            raise Conflict(f"{occupied[0]} is not empty.", "Restore into an OFFING_HOME that holds nothing yet.")
        _refuse_used(servers.owner_url, manifest)
        with tempfile.TemporaryDirectory(dir=prepare(settings.home).home) as work:
            dumped = extract(file, manifest, Path(work))
            for name, place in beside.items():  # before the database, because it is they that find no room
                put_back(Path(work) / name, place, undo)
            _restore_database(servers, manifest, dumped, beside, undo)
        undo.pop_all()


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


def _refuse_used(url: str, manifest: Mapping[str, Any]) -> None:
    """Raises Conflict for a database that holds something, is used, or is too old."""
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


def _restore_database(
    servers: Servers, manifest: Mapping[str, Any], dumped: Path, beside: Mapping[str, Path], undo: ExitStack
) -> None:
    from offing.storage import backup as database

    url = servers.owner_url
    tools = choose_tools(max(database.major_of(url), manifest["tools"]))
    undo.callback(database.clear, url)
    database.clear(url)
    restore_dump(tools, *database.without_password(url), dumped)
    policies = [database.Policy(**policy) for policy in manifest["policies"]]
    described = database.Described(manifest["server"], manifest["ledger"], policies)
    database.complete(url, described, _moved(manifest, beside))
    migrate(servers)


def _moved(manifest: Mapping[str, Any], beside: Mapping[str, Path]) -> "Moved":
    from offing.storage.backup import Moved

    folders = {"policies": (manifest["policies_folder"], str(beside["policies"]))}
    if "home" in manifest:  # earlier backups do not say it
        folders["training"] = (f"{manifest['home']}/training", str(beside["training"]))
    addresses = {address: _place_of(name, beside) for address, name in manifest.get("addresses", {}).items()}
    return Moved(folders, addresses)


def _place_of(name: str, beside: Mapping[str, Path]) -> str:
    folder, _, rest = name.partition("/")
    return str(beside[folder] / rest)
