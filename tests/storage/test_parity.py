"""Stored log-probabilities computed again by a server that scores: what differs is set aside, with the reason."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from offing.cli.trajectories_check import check
from offing.core.role_call import SegmentPosition
from offing.core.run import Fence
from offing.core.trajectory import Fracture
from offing.local import Servers
from offing.models.credentials import Destination
from offing.services import parity
from offing.storage import segments
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import claimed
from tests.storage.test_turns import a_trace, an_answer, wrote
from tests.wire.policies import Policies, logprob, says
from tests.wire.server import WireServer


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer(Policies(says(""), versions=("small@3",))) as server:
        yield server


def sampled(prompt: tuple[int, ...] = (1, 2, 3), text: str = "ab"):
    """A trace as the server would have given it."""
    trace = a_trace(prompt, text)
    ids = trace.completion_ids
    given = tuple(logprob([*prompt, *ids[:n]], id) for n, id in enumerate(ids))
    return replace(trace, logprobs=given, weights_sha256="w")


async def recorded(pool: Database) -> Fence:
    """Two turns of one segment."""
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(sampled()), SegmentPosition(0, 0, Fracture.ROOT))
    longer = sampled((1, 2, 3, 97, 98, 0, 9), "cd")
    await wrote(pool, fence, an_answer(longer, text="cd"), SegmentPosition(0, 1, kept_tokens=6))
    return fence


async def checked(pool: Database, server: WireServer, **more: float) -> parity.Parity:
    return await parity.check(pool, LOCAL_TENANT, Destination(server.url), sample=10, **more)  # type: ignore[arg-type]


async def quarantined(pool: Database, fence: Fence) -> list[str]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return [turn.quarantine for turn in await segments.turns_of(connection, fence.run)]


async def test_what_was_sampled_is_found_again(pool: Database, server: WireServer) -> None:
    fence = await recorded(pool)
    found = await checked(pool, server)
    assert (found.checked, found.doubtful) == (2, ())
    assert found.worst < 1e-6
    assert await quarantined(pool, fence) == ["", ""]


@pytest.mark.parametrize("column", ["completion_ids", "prompt_ids"])
async def test_a_flipped_id_is_caught_and_never_drawn_again(pool: Database, server: WireServer, column: str) -> None:
    fence = await recorded(pool)
    flip = f"update turn set {column} = set_byte({column}, 0, 77) where place = 1"
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(flip.encode())
    found = await checked(pool, server)
    whole, broken = await quarantined(pool, fence)
    assert whole == ""
    assert "log-probabilities differ" in broken
    assert [one.doubt for one in found.doubtful] == [broken]
    assert (await checked(pool, server)).checked == 1


async def test_a_tolerance_can_be_wider(pool: Database, server: WireServer) -> None:
    fence = await recorded(pool)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update turn set completion_ids = set_byte(completion_ids, 0, 77) where place = 1")
    assert (await checked(pool, server, tolerance=5.0)).doubtful == ()
    assert await quarantined(pool, fence) == ["", ""]


async def test_other_weights_under_the_same_name_are_caught(pool: Database, server: WireServer) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(replace(sampled(), weights_sha256="v")), SegmentPosition(0, 0, Fracture.ROOT))
    await checked(pool, server)
    assert "weights" in (await quarantined(pool, fence))[0]


async def test_a_version_that_is_gone_leaves_turns_as_they_are(pool: Database) -> None:
    fence = await recorded(pool)
    async with WireServer(Policies(says(""), versions=("small@4",))) as other:
        found = await checked(pool, other)
    assert (found.checked, len(found.unscored)) == (0, 2)
    assert "small@3" in found.unscored[0].unscored
    assert await quarantined(pool, fence) == ["", ""]


@pytest.mark.parametrize("broken", [False, True])
async def test_the_command_says_what_it_found_by_its_exit(
    pool: Database,
    server: WireServer,
    servers: Servers,
    owner_url: str,
    app_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    broken: bool,
) -> None:
    fence = await recorded(pool)
    if broken:
        async with pool.transaction(LOCAL_TENANT) as connection:
            await connection.execute("update turn set completion_ids = set_byte(completion_ids, 0, 77) where place = 1")
    where = {"DATABASE_URL": owner_url, "OFFING_APP_DATABASE_URL": app_url, "REDIS_URL": servers.redis_url}
    for name, value in (where | {"OFFING_HOME": str(tmp_path), "OFFING_ENGINE_URL": server.url}).items():
        monkeypatch.setenv(name, value)
    code = await asyncio.to_thread(check, json=True)
    found = json.loads(capfdbinary.readouterr().out)
    assert (code, len(found["compared"])) == (int(broken), 2)
    assert [bool(one["doubt"]) for one in found["compared"]] == [False, broken]
    assert [bool(reason) for reason in await quarantined(pool, fence)] == [False, broken]
