"""`make traces`: compares every case, with a crash at every transaction, and prints the first difference of each.

    .venv/bin/python -m tests.traces [--check] [--undisturbed] [--only PREFIX ...]

Without `--check` the cases are recorded anew. Exit status 1: something differs, or a case is not the same each time.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog

from offing.local import ServerUrls, open_servers
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings
from offing.storage.migrate import migrate
from tests.traces import files
from tests.traces.cases import Case, cases
from tests.traces.comparison import Unsteady, changed_after, every_moment, recorded_anew, undisturbed
from tests.traces.kernel import Kernel, opened, prepared

SILENT = 50


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.traces", description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--undisturbed", action="store_true", help="without crashes")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX")
    inputs = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(SILENT))
    chosen = [case for case in cases() if case.name.startswith(tuple(inputs.only))]
    with _servers() as servers:
        return asyncio.run(_all(servers, chosen, check=inputs.check, crashes=not inputs.undisturbed))


@contextmanager
def _servers() -> Generator[ServerUrls]:
    with tempfile.TemporaryDirectory(prefix="offing-traces-", ignore_cleanup_errors=True) as home:
        os.environ[ACCEPTED_SERVERS_VARIABLE] = str(Path(home, "engine-servers"))
        settings = Settings(home=Path(home), database_url=None, redis_url=None)
        with open_servers(settings, durable=False) as servers:
            migrate(
                servers.owner_url,
                folder=get_migrations_dir(),
                app_role=servers.app_role,
                app_password=servers.app_password,
            )
            yield servers


async def _all(servers: ServerUrls, chosen: Sequence[Case], *, check: bool, crashes: bool) -> int:
    await prepared(servers.app_url)
    wrong = 0
    for case in chosen:
        began = time.monotonic()
        async with opened(servers.owner_url, servers.app_url) as kernel:
            message = await (_checked if check else _recorded)(kernel, case, crashes=crashes)
        print(f"{case.name} ({time.monotonic() - began:.1f} s){': ' if message else ''}{message}", flush=True)
        wrong += bool(message)
    print(f"{len(chosen)} cases, {wrong} of them differ")
    return 1 if wrong else 0


async def _recorded(kernel: Kernel, case: Case, *, crashes: bool) -> str:
    try:
        files.write(await recorded_anew(kernel, case, crashes=crashes))
    except Unsteady as error:
        return f"it is not the same each time: {error}"
    return ""


async def _checked(kernel: Kernel, case: Case, *, crashes: bool) -> str:
    known = files.read(case.name)
    now = await undisturbed(kernel, case, known)
    if now.changed or not crashes:
        return now.changed
    if now.transactions != known.transactions:
        print(f"{case.name} begins {now.transactions} transactions and not {known.transactions}: any outcome will do")
        known = known.at_other_moments()
    result = await changed_after(kernel, case, known, every_moment(now.transactions))
    return f"{result[0]} ({len(result)} moments differ)" if result else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
