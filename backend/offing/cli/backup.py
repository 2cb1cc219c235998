"""`offing backup` and `offing restore`: the database and its files in one archive."""

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

from offing.cli.backup_files import gather_files, list_entries, list_locations, restore_path
from offing.cli.hooks import migrate
from offing.core.errors import Conflict, InvalidInput
from offing.local.archive import explain_os_errors, extract, read_manifest, write_archive
from offing.local.background import get_status
from offing.local.data_directory import locate_data_directory, prepare_data_directory
from offing.local.postgres_tools import choose_tools, dump_schema
from offing.local.postgres_tools import restore_dump as restore_dump
from offing.local.servers import ServerUrls, open_servers
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings, load_settings

if TYPE_CHECKING:
    from offing.storage.backup import DatabaseSnapshot, RelocatedPaths

SESSION_TABLES = ("app.login_link", "app.session", "app.worker_process")
"""Tables whose rows are not in a backup. Users sign in again after a restore, and workers report again."""


def backup(file: Path | None) -> int:
    """Write a backup and return the exit code. The installation may keep running."""
    settings = load_settings()
    target = file or Path(datetime.now(UTC).strftime("offing-%Y%m%d-%H%M%S.backup"))
    if target.is_dir():
        raise InvalidInput("FILE", f"{target} is a folder", "Use the path of a file.")
    with open_servers(settings) as servers:
        left_out = write_backup(settings, servers.owner_url, target)
    for description in left_out:
        print(f"not in the backup: {description}", file=sys.stderr)
    print(f"{target}  {target.stat().st_size / 1e6:.1f} MB")
    return 0


def write_backup(settings: Settings, owner_url: str, target: Path) -> list[str]:
    """Write a backup to `target`.

    Return descriptions of files that database rows name and that the backup does not contain.
    """
    from offing.storage.backup import describe_database, open_snapshot, split_password

    described = describe_database(owner_url)
    if not described.migrations:
        raise Conflict("The database does not contain an installation of Offing.", "Check OFFING_HOME or DATABASE_URL.")
    tools = choose_tools(described.postgres_version)
    with (
        explain_os_errors("The backup cannot be written", "Fix the cause and try again."),
        tempfile.TemporaryDirectory(dir=target.parent) as work_dir,
        open_snapshot(owner_url) as stored,
        tempfile.TemporaryDirectory(
            prefix=".backup-", dir=_find_scratch_dir(settings, stored) or work_dir
        ) as staging_dir,
    ):
        contents = gather_files(settings, stored, Path(staging_dir))
        dump_file = Path(work_dir) / "database.dump"
        address, password = split_password(owner_url)
        dump_schema(
            tools, address, password, "app", dump_file, snapshot=stored.snapshot_name, excluded_tables=SESSION_TABLES
        )
        created = {"made_at": datetime.now(UTC), "offing": version("offing"), "tools": tools.major}
        source_paths = {
            "policies_folder": str(list_locations(settings)["policies"]),
            "home": str(locate_data_directory(settings.home).root),
        }
        manifest = created | source_paths | {"addresses": contents.addresses} | asdict(described)
        write_archive(target, manifest, dump_file, contents.entries)
    return contents.left_out


def _find_scratch_dir(settings: Settings, snapshot: "DatabaseSnapshot") -> Path | None:
    """Return a directory on the disk of the checkpoints, where hard links can replace copies.

    `None` means that there are no checkpoints.
    """
    training = list_locations(settings)["training"]
    return training if snapshot.checkpoints and os.access(training, os.W_OK) else None


def restore(file: Path) -> int:
    """Restore a backup into an empty installation and return the exit code."""
    settings = load_settings()
    manifest = read_manifest(file)
    check_not_newer(manifest)
    if (running := get_status(settings)).pid is not None:
        raise Conflict(
            f"Offing is running for this data directory (pid {running.pid}).", "Stop it with `offing down` first."
        )
    with open_servers(settings) as servers:
        read_backup(settings, servers, file, manifest)
    print(f"restored {file}, created {manifest['made_at']}. Start it with `offing up`. Active runs then continue.")
    return 0


def read_backup(settings: Settings, servers: ServerUrls, file: Path, manifest: Mapping[str, Any]) -> None:
    """Restore the database and the files of a backup.

    Raises Conflict and changes nothing if the installation is not empty or not compatible.
    """
    locations = list_locations(settings)
    with explain_os_errors("The backup cannot be restored", "Fix the cause and try again."), ExitStack() as undo:
        if occupied := [path for path in locations.values() if list_entries(path)]:
            raise Conflict(f"{occupied[0]} is not empty.", "Set OFFING_HOME to an empty folder.")
        _check_unused(servers.owner_url, manifest)
        with tempfile.TemporaryDirectory(dir=prepare_data_directory(settings.home).root) as work_dir:
            dump_file = extract(file, manifest, Path(work_dir))
            for name, target in locations.items():  # before the database, because files may not fit on the disk
                restore_path(Path(work_dir) / name, target, undo)
            _restore_database(servers, manifest, dump_file, locations, undo)
        undo.pop_all()


def check_not_newer(manifest: Mapping[str, Any]) -> None:
    """Raise Conflict if the backup has a newer database schema than this version supports."""
    from offing.storage.migrate import load_migrations

    hashes = {migration.version: migration.sha256 for migration in load_migrations(get_migrations_dir())}
    unknown = [name for name, sha256, *_ in manifest["migrations"] if hashes.get(name) != sha256]
    if unknown:
        raise Conflict(
            f"The backup was written by Offing {manifest['offing']}. It has the migrations {', '.join(unknown)}, "
            "which this version of Offing does not have.",
            f"Restore it with Offing {manifest['offing']} or later.",
        )


def _check_unused(url: str, manifest: Mapping[str, Any]) -> None:
    """Raise Conflict if the database is not empty, is in use, or has an older Postgres than the backup."""
    from offing.storage import backup as database

    if (table := database.find_used_table(url)) is not None:
        raise Conflict(
            f"The database is not empty. The table {table} has rows.",
            "Restore into a new OFFING_HOME, or an empty database (DATABASE_URL).",
        )
    if others := database.count_other_connections(url):
        raise Conflict(f"{others} other programs are connected to the database.", "Stop the API and the workers first.")
    server = database.get_major_version(url)
    if server < manifest["postgres_version"]:
        raise Conflict(
            f"The backup was written from Postgres {manifest['postgres_version']}, "
            f"but this server is Postgres {server}.",
            f"Restore into Postgres {manifest['postgres_version']} or later.",
        )


def _restore_database(
    servers: ServerUrls, manifest: Mapping[str, Any], dump_file: Path, locations: Mapping[str, Path], undo: ExitStack
) -> None:
    from offing.storage import backup as database

    url = servers.owner_url
    tools = choose_tools(max(database.get_major_version(url), manifest["tools"]))
    undo.callback(database.drop_schema, url)
    database.drop_schema(url)
    restore_dump(tools, *database.split_password(url), dump_file)
    policies = [database.RowSecurityPolicy(**policy) for policy in manifest["policies"]]
    described = database.DatabaseDescription(manifest["postgres_version"], manifest["migrations"], policies)
    database.complete_restore(url, described, _build_moved_paths(manifest, locations))
    migrate(servers)


def _build_moved_paths(manifest: Mapping[str, Any], locations: Mapping[str, Path]) -> "RelocatedPaths":
    from offing.storage.backup import RelocatedPaths

    folders = {"policies": (manifest["policies_folder"], str(locations["policies"]))}
    if "home" in manifest:  # earlier backups do not have this key
        folders["training"] = (f"{manifest['home']}/training", str(locations["training"]))
    addresses = {address: _locate_entry(name, locations) for address, name in manifest.get("addresses", {}).items()}
    return RelocatedPaths(folders, addresses)


def _locate_entry(name: str, locations: Mapping[str, Path]) -> str:
    folder, _, rest = name.partition("/")
    return str(locations[folder] / rest)
