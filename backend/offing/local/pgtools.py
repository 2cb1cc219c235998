"""pg_dump and pg_restore: which installation's, and how they are run. Knows nothing of what is dumped."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offing.core.errors import Unavailable
from offing.local.environment import server_environment
from offing.local.postgres import installations

_MAJOR = re.compile(r"(\d+)(?:\.|beta|rc|$)")


@dataclass(frozen=True, slots=True)
class Tools:
    """pg_dump and pg_restore of one installation."""

    folder: Path
    major: int


def choose_tools(major: int) -> Tools:
    """Return the oldest tools that are not older than `major`, the server's version or the dump's.

    Raises Unavailable when there are none: Postgres refuses to dump a server, or to read a dump, newer than the tools.
    """
    usable = [tools for tools in _installed() if tools.major >= major]
    if not usable:
        raise Unavailable(
            f"This needs pg_dump and pg_restore of Postgres {major} or later, and there are none on this machine. "
            f"Install the package postgresql-client-{major}."
        )
    return min(usable, key=lambda tools: tools.major)


def _installed() -> Iterator[Tools]:
    folders = [found.folder for found in installations()]
    on_path = shutil.which("pg_dump")
    folders += [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in ("pg_dump", "pg_restore")):
            said = _run([folder / "pg_restore", "--version"]).split()
            found = [_MAJOR.match(word) for word in said if word[0].isdigit()]
            if found and found[0]:
                yield Tools(folder, int(found[0][1]))


def dump(
    tools: Tools,
    url: str,
    password: str | None,
    schema: str,
    target: Path,
    *,
    snapshot: str,
    leave_out: Sequence[str],
) -> None:
    """Write one consistent view of a schema to `target`, in Postgres' own compressed form.

    `snapshot` is the view, as a transaction that is still open has exported it. `leave_out` are tables whose rows are
    not written. The connecting role needs to see every row by its policies, since row-level security stays on: only a
    superuser could turn it off.
    """
    argv = [tools.folder / "pg_dump", "--format=custom", f"--schema={schema}", "--no-owner", "--no-privileges"]
    argv += [f"--snapshot={snapshot}"]
    argv += ["--enable-row-security", *(f"--exclude-table-data={table}" for table in leave_out)]
    _run([*argv, f"--file={target}", f"--dbname={url}"], password)


def restore(tools: Tools, url: str, password: str | None, source: Path) -> None:
    """Bring a dump back into a database without that schema, all of it or nothing. Policies are left out."""
    listing = source.with_name(f"{source.name}.list")
    contents = _run([tools.folder / "pg_restore", "--list", source])
    listing.write_text("".join(line for line in contents.splitlines(True) if " POLICY " not in line))
    argv = [tools.folder / "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    _run([*argv, f"--use-list={listing}", f"--dbname={url}", source], password)


def _run(argv: Sequence[str | Path], password: str | None = None) -> str:
    """Return what a tool writes. Raises Unavailable with its last words when it fails."""
    environment = server_environment() | {name: value for name, value in os.environ.items() if name.startswith("PG")}
    environment |= {"PGPASSWORD": password} if password else {}
    done = subprocess.run([str(word) for word in argv], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{Path(argv[0]).name} failed: {done.stderr.strip()[-1500:]}")
    return done.stdout
