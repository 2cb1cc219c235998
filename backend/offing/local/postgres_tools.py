"""pg_dump and pg_restore: choose an installation and run them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offing import environment
from offing.core.errors import Unavailable
from offing.local.child_environment import build_server_environment
from offing.local.postgres import list_installations

_MAJOR = re.compile(r"(\d+)(?:\.|beta|rc|$)")


@dataclass(frozen=True, slots=True)
class PostgresTools:
    """pg_dump and pg_restore of one installation."""

    folder: Path
    major: int


def choose_tools(major: int) -> PostgresTools:
    """Return the oldest tools that are not older than `major`, the version of the server or the dump.

    Raises Unavailable if there are none. Postgres cannot dump a server, or read a dump, that is newer
    than the tools.
    """
    usable = [tools for tools in _list_installed() if tools.major >= major]
    if not usable:
        raise Unavailable(
            f"pg_dump and pg_restore of Postgres {major} or later are required, but were not found. "
            f"Install the package postgresql-client-{major}."
        )
    return min(usable, key=lambda tools: tools.major)


def _list_installed() -> Iterator[PostgresTools]:
    folders = [installation.folder for installation in list_installations()]
    on_path = shutil.which("pg_dump")
    folders += [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in ("pg_dump", "pg_restore")):
            version_words = _run_tool([folder / "pg_restore", "--version"]).split()
            matches = [_MAJOR.match(word) for word in version_words if word[0].isdigit()]
            if matches and matches[0]:
                yield PostgresTools(folder, int(matches[0][1]))


def dump_schema(
    tools: PostgresTools,
    url: str,
    password: str | None,
    schema: str,
    target: Path,
    *,
    snapshot: str,
    excluded_tables: Sequence[str],
) -> None:
    """Dump a consistent snapshot of a schema to `target` in Postgres' custom format.

    `snapshot` is the snapshot that an open transaction has exported. Rows of `excluded_tables` are not
    written. Row-level security stays on, since only a superuser could turn it off, so the policies of
    the connecting role must allow it to see every row.
    """
    argv = [tools.folder / "pg_dump", "--format=custom", f"--schema={schema}", "--no-owner", "--no-privileges"]
    argv += [f"--snapshot={snapshot}"]
    argv += ["--enable-row-security", *(f"--exclude-table-data={table}" for table in excluded_tables)]
    _run_tool([*argv, f"--file={target}", f"--dbname={url}"], password)


def restore_dump(tools: PostgresTools, url: str, password: str | None, source: Path) -> None:
    """Restore a dump into a database without that schema, in one transaction.

    Row-level security policies are left out.
    """
    listing = source.with_name(f"{source.name}.list")
    contents = _run_tool([tools.folder / "pg_restore", "--list", source])
    listing.write_text("".join(line for line in contents.splitlines(True) if " POLICY " not in line))
    argv = [tools.folder / "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    _run_tool([*argv, f"--use-list={listing}", f"--dbname={url}", source], password)


def _run_tool(argv: Sequence[str | Path], password: str | None = None) -> str:
    """Return the output of a tool. Raises Unavailable with its error message if it fails."""
    variables = build_server_environment() | {
        name: value for name, value in environment.VARIABLES.items() if name.startswith("PG")
    }
    variables |= {"PGPASSWORD": password} if password else {}
    completed = subprocess.run([str(word) for word in argv], env=variables, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise Unavailable(f"{Path(argv[0]).name} failed: {completed.stderr.strip()[-1500:]}")
    return completed.stdout
