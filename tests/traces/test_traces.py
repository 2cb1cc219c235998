"""Runs leave what was recorded, undisturbed and after crashes; `make traces` tries all of these."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from offing.local import ServerUrls
from tests.conftest import CLONE, at_database
from tests.traces import files
from tests.traces.cases import Case, cases
from tests.traces.comparison import changed_after, every_moment, undisturbed
from tests.traces.kernel import Kernel, opened, prepared

STRIDE = 24
"""Of the moments of a crash, in each case from another one on."""

WHOLE = frozenset({"plain_keeping", "plain_remembering"})
"""Tried at every moment: a graph within it continues from its own checkpoint, behind calls that are not made again.

That of `plain_remembering` may be from an earlier call, whose end it must not take for that of the present one.
"""

RECORDED = sorted(files.FOLDER.glob("*.json"))

_serial = count(1)


@pytest.fixture(scope="module")
def known() -> dict[str, Case]:
    return {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def urls(servers: ServerUrls, template_database: str) -> Iterator[tuple[str, str]]:
    """Owner's and app's, of a database with a library that all cases share."""
    name = f"traces{next(_serial)}"
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute(CLONE.format(name=name, template=template_database).encode())
        results = at_database(servers.owner_url, name), at_database(servers.app_url, name)
        asyncio.run(prepared(results[1]))
        yield results
        owner.execute(f"drop database {name} with (force)".encode())


@pytest.fixture
async def kernel(urls: tuple[str, str]) -> AsyncIterator[Kernel]:
    async with opened(*urls) as kernel:
        yield kernel


def test_every_case_is_recorded_and_nothing_else(known: dict[str, Case]) -> None:
    assert sorted(map(files.path_of, known)) == RECORDED


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_run_leaves_what_was_recorded(kernel: Kernel, known: dict[str, Case], path: Path) -> None:
    recorded = files.read_file(path)
    case, first = known[recorded.case], RECORDED.index(path) % STRIDE
    now = await undisturbed(kernel, case, recorded)
    assert now.changed == ""
    if now.transactions != recorded.transactions:
        recorded = recorded.at_other_moments()
    moments = every_moment(now.transactions)
    moments = moments if case.name in WHOLE else moments[first::STRIDE]
    assert await changed_after(kernel, case, recorded, moments) == []
