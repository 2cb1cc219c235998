"""What a run of a policy leaves for training: segments as its contexts were, exact tokens, also over slices."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import segments
from offing.storage.runs import RunRow
from offing.storage.segments import StoredRoleCall, StoredSegment
from tests.model_provider.policy_server import ROLES, Policies, Respond, logprob, rendered
from tests.model_provider.server import WireServer
from tests.workers import segment_graph
from tests.workers.conftest import Platform, StartWorker

TURNS = 6

SHAPE = [
    ("diarist", "root", 3, None),
    ("reader", "root", 1, None),
    ("reader", "workspace_reset", 1, 1),
    ("reader", "workspace_reset", 1, 2),
    ("diarist", "memory_edit", 3, 0),
    ("reader", "workspace_reset", 1, 3),
    ("reader", "workspace_reset", 1, 5),
    ("reader", "workspace_reset", 1, 6),
]
"""Role, why the segment began, its turns, its parent."""


def different() -> Respond:
    """Another word at each request."""
    numbers = count(1)

    def say(_: dict[str, Any]) -> str:
        return f"wörd {next(numbers)}"

    return say


def the_run(durability: str = "sync", *, seed: int = 5, turns: int = TURNS, **more: Any) -> RunRequest:
    choice = EngineConfig(engine="policy", model="small@1", prompt_format="compact", max_tokens=400, **more)
    engines = {"diarist": choice, "reader": choice}
    return RunRequest(
        "Say words", "recording", budget=Budget(max_turns=turns), engines=engines, seed=seed, durability=durability
    )


async def run_to_end(platform: Platform, request: RunRequest) -> RunRow:
    graphs = open_registry(segment_graph.GRAPHS)
    submitted = await submit_run(platform.database, platform.notifier, platform.tenant, request, graphs=graphs)
    return await platform.ended(submitted.run.id)


async def left(platform: Platform, run: RunRow) -> tuple[list[StoredSegment], list[StoredRoleCall]]:
    async with platform.database.transaction(platform.tenant) as connection:
        return await segments.read_segments(connection, run.id), await segments.read_role_calls(connection, run.id)


def environment(server: WireServer, **more: str) -> dict[str, str]:
    return {"OFFING_ENGINE_URL": server.url, "OFFING_EXTRA_GRAPHS": segment_graph.GRAPHS, **more}


def shape(results: list[StoredSegment]) -> list[tuple[Any, ...]]:
    return [(s.role, s.boundary_reason, len(s.role_calls), s.parent_idx) for s in results]


def assert_exact(turns: list[StoredRoleCall], chats: Sequence[Mapping[str, Any]]) -> None:
    """Each turn's log-probabilities are those of its ids in their place, and its prompt is the one that was sent."""
    assert len(turns) == len(chats)
    for turn in turns:
        assert turn.tokens is not None, turn.trainable_reason
        ids = list(turn.tokens.segment_ids[: turn.tokens.end])
        at = turn.tokens.start
        recomputed = [logprob(ids[:n], ids[n]) for n in range(at, len(ids))]
        assert list(turn.tokens.logprobs) == pytest.approx(recomputed, abs=1e-6)
        sent = [m["content"] for m in next(c for c in chats if c["seed"] == turn.sampling["seed"])["messages"]]
        assert [m.text for m in turn.messages] == sent


def assert_rendered(turns: list[StoredRoleCall]) -> None:
    """Each prompt's ids say what its messages say, no more and no less."""
    for turn in turns:
        assert turn.tokens is not None
        messages = [{"role": m.role, "content": m.text} for m in turn.messages]
        assert list(turn.tokens.prompt_ids) == [*rendered(messages), ROLES["assistant"]]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_growth_edits_and_rebuilds_become_segments_with_exact_tokens(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(policies := Policies(different())) as server:
        start_worker(**environment(server))
        run = await run_to_end(platform, the_run(durability))
    result, turns = await left(platform, run)
    assert run.status is RunStatus.DONE
    assert shape(result) == SHAPE
    assert_exact(turns, policies.chats)
    assert_rendered(turns)
    assert [turn.trainable for turn in turns] == ["none", *["rl"] * (len(turns) - 1)]
    assert turns[0].trainable_reason == "the flow took it out of its context unseen"
    assert [turn.is_final for turn in turns] == [False] * 10 + [True] * 2
    assert [(s.kind, s.start_token, s.end_token) for s in turns[0].spans] == [("action", 0, 8)]


async def test_a_turn_continues_from_its_tokens_even_where_the_template_would_retell_them(
    platform: Platform, start_worker: StartWorker
) -> None:
    async with WireServer(policies := Policies(different(), retells=True)) as server:
        start_worker(**environment(server))
        exact = await run_to_end(platform, the_run())
    assert shape((await left(platform, exact))[0]) == SHAPE
    assert_exact((await left(platform, exact))[1], policies.chats)


async def test_without_prefixes_a_retold_turn_breaks_the_segment(platform: Platform, start_worker: StartWorker) -> None:
    without = frozenset({"prefix_used"})
    async with WireServer(policies := Policies(different(), retells=True, without=without)) as server:
        start_worker(**environment(server))
        run = await run_to_end(platform, the_run())
    result, turns = await left(platform, run)
    broken = [s.boundary_reason for s in result if s.role == "diarist"]
    assert broken == ["root", "template_break", "template_break", "memory_edit", "template_break", "template_break"]
    assert_exact(turns, policies.chats)


async def test_segments_continue_over_slices_and_forks_can_start_before_each_turn(
    platform: Platform, start_worker: StartWorker
) -> None:
    async with WireServer(policies := Policies(different())) as server:
        start_worker(**environment(server, OFFING_SLICE_MAX_TURNS="2"))
        run = await run_to_end(platform, the_run())
    result, turns = await left(platform, run)
    assert run.fence > 2
    assert shape(result) == SHAPE
    assert_exact(turns, policies.chats)
    positions = [turn.checkpoint_id for turn in turns]
    assert None not in positions
    assert len(set(positions)) == TURNS


async def test_text_without_tokens_has_segments_too(platform: Platform, start_worker: StartWorker) -> None:
    async with WireServer(Policies(different(), without=frozenset({"token_ids"}))) as server:
        start_worker(**environment(server))
        run = await run_to_end(platform, the_run())
    result, turns = await left(platform, run)
    assert shape(result) == SHAPE
    assert {(t.tokens, t.trainable, t.trainable_reason) for t in turns[1:]} == {
        (None, "sft", "the server does not return completion token ids")
    }


async def test_a_repeated_rollout_asks_with_the_same_seeds_and_another_member_with_others(
    platform: Platform, start_worker: StartWorker
) -> None:
    async with WireServer(policies := Policies(different())) as server:
        start_worker(**environment(server))
        for seed in (5, 5, 6):
            await run_to_end(platform, the_run("exit", seed=seed))
    seeds = [chat["seed"] for chat in policies.chats]
    first, again, other = seeds[:12], seeds[12:24], seeds[24:]
    assert first == again
    assert len({*first, *other}) == 24
