"""Stored log-probabilities computed again by a server that scores: what differs is quarantined, with the reason."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from offing.cli.trajectories_check import check
from offing.core.role_call import SegmentPosition
from offing.core.run import FencingToken
from offing.core.trajectory import BoundaryReason
from offing.local import ServerUrls
from offing.models.credentials import EngineEndpoint
from offing.services import logprob_parity
from offing.storage import segments
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.model_provider.policy_server import Policies, logprob, says
from tests.model_provider.server import WireServer
from tests.storage.builders import claimed
from tests.storage.test_role_calls import a_trace, an_answer, wrote


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer(Policies(says(""), versions=("small@3",))) as server:
        yield server


def sampled(prompt: tuple[int, ...] = (1, 2, 3), text: str = "ab"):
    """A trace as the server would have given it."""
    trace = a_trace(prompt, text)
    ids = trace.completion_ids
    inputs = tuple(logprob([*prompt, *ids[:n]], id) for n, id in enumerate(ids))
    return replace(trace, logprobs=inputs, weights_sha256="w")


async def recorded(pool: Database) -> FencingToken:
    """Two turns of one segment."""
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(sampled()), SegmentPosition(0, 0, BoundaryReason.ROOT))
    longer = sampled((1, 2, 3, 97, 98, 0, 9), "cd")
    await wrote(pool, fence, an_answer(longer, text="cd"), SegmentPosition(0, 1, kept_tokens=6))
    return fence


async def checked(pool: Database, server: WireServer, **more: float) -> logprob_parity.ParityReport:
    return await logprob_parity.measure_parity(pool, LOCAL_TENANT, EngineEndpoint(server.url), sample_size=10, **more)  # type: ignore[arg-type]


async def quarantined(pool: Database, fence: FencingToken) -> list[str]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return [turn.quarantine for turn in await segments.read_role_calls(connection, fence.run_id)]


async def test_what_was_sampled_is_found_again(pool: Database, server: WireServer) -> None:
    fence = await recorded(pool)
    result = await checked(pool, server)
    assert (result.scored_count, result.quarantined) == (2, ())
    assert result.max_difference < 1e-6
    assert await quarantined(pool, fence) == ["", ""]


@pytest.mark.parametrize("column", ["completion_ids", "prompt_ids"])
async def test_a_flipped_id_is_caught_and_never_drawn_again(pool: Database, server: WireServer, column: str) -> None:
    fence = await recorded(pool)
    flip = f"update role_call set {column} = set_byte({column}, 0, 77) where position = 1"
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(flip.encode())
    result = await checked(pool, server)
    whole, broken = await quarantined(pool, fence)
    assert whole == ""
    assert "log-probabilities differ" in broken
    assert [one.quarantine_reason for one in result.quarantined] == [broken]
    assert (await checked(pool, server)).scored_count == 1


async def test_a_tolerance_can_be_wider(pool: Database, server: WireServer) -> None:
    fence = await recorded(pool)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(
            "update role_call set completion_ids = set_byte(completion_ids, 0, 77) where position = 1"
        )
    assert (await checked(pool, server, tolerance=5.0)).quarantined == ()
    assert await quarantined(pool, fence) == ["", ""]


async def test_other_weights_under_the_same_name_are_caught(pool: Database, server: WireServer) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(
        pool, fence, an_answer(replace(sampled(), weights_sha256="v")), SegmentPosition(0, 0, BoundaryReason.ROOT)
    )
    await checked(pool, server)
    assert "weights" in (await quarantined(pool, fence))[0]


async def test_a_deleted_version_leaves_turns_unchanged(pool: Database) -> None:
    fence = await recorded(pool)
    async with WireServer(Policies(says(""), versions=("small@4",))) as other:
        result = await checked(pool, other)
    assert (result.scored_count, len(result.failed)) == (0, 2)
    assert "small@3" in result.failed[0].failure
    assert await quarantined(pool, fence) == ["", ""]


@pytest.mark.parametrize("broken", [False, True])
async def test_the_command_says_what_it_found_by_its_exit(
    pool: Database,
    server: WireServer,
    servers: ServerUrls,
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
            await connection.execute(
                "update role_call set completion_ids = set_byte(completion_ids, 0, 77) where position = 1"
            )
    where = {"DATABASE_URL": owner_url, "OFFING_APP_DATABASE_URL": app_url, "REDIS_URL": servers.redis_url}
    for name, value in (where | {"OFFING_HOME": str(tmp_path), "OFFING_ENGINE_URL": server.url}).items():
        monkeypatch.setenv(name, value)
    code = await asyncio.to_thread(check, json=True)
    output = json.loads(capfdbinary.readouterr().out)
    assert (code, len(output["calls"])) == (int(broken), 2)
    assert [bool(one["quarantine_reason"]) for one in output["calls"]] == [False, broken]
    assert [bool(reason) for reason in await quarantined(pool, fence)] == [False, broken]
