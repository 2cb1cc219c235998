"""The fenced saver: it saves for the owner, keeps one checkpoint per turn, and never runs what it reads."""

import contextlib
from enum import StrEnum

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_POS_ARGS, JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.types import Interrupt
from ormsgpack import Ext, packb

from offing.core.errors import LeaseLostError, StateTooLargeError
from offing.core.run import FencingToken
from offing.kernel.checkpointer import TRANSIENT_INTERRUPT_ID
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.state_serializer import build_serializer
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import claimed, older


def a_checkpoint(turn: int, **values: object) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"turn": turn, **values}
    return checkpoint


async def put(saver: FencedCheckpointer, checkpoint: Checkpoint, step: int = 0) -> None:
    await saver.aput({"configurable": {"checkpoint_ns": ""}}, checkpoint, {"step": step}, {})


async def saved(pool: Database) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select count(*) from checkpoint")).fetchone()
    assert row is not None
    return row[0]


async def test_what_was_saved_is_read_back(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    checkpoint = a_checkpoint(7)
    await put(FencedCheckpointer(pool, claim.fence), checkpoint, 5)
    result = await FencedCheckpointer(pool, claim.fence).aget_tuple({"configurable": {}})
    assert result is not None
    assert result.checkpoint == checkpoint
    assert result.metadata.get("step") == 5


async def test_one_checkpoint_a_turn_is_kept(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence, turn_key="turn")
    for turn in (1, 1, 1, 2, 2, 3):
        await put(saver, a_checkpoint(turn))
    assert await saved(pool) == 0
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.save_due(connection)
    assert await saved(pool) == 3


async def test_a_save_that_was_rolled_back_is_made_again(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence, turn_key="turn")
    await put(saver, a_checkpoint(1))
    with contextlib.suppress(ZeroDivisionError):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await saver.save_due(connection)
            raise ZeroDivisionError
    async with pool.transaction(LOCAL_TENANT) as connection:
        due = await saver.save_due(connection)
    saver.confirm_saved(due)
    assert await saved(pool) == 1


async def test_a_flush_saves_the_position_within_a_turn(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence, turn_key="turn")
    await put(saver, a_checkpoint(1), 1)
    await put(saver, a_checkpoint(1), 2)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
        position = await FencedCheckpointer(pool, claim.fence).load_position(connection)
    assert position is not None
    assert (position.run_id, position.superstep) == (claim.fence.run_id, 2)


async def test_a_stale_worker_saves_nothing(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    with pytest.raises(LeaseLostError):
        await put(FencedCheckpointer(pool, older(claim.fence)), a_checkpoint(1))
    assert await saved(pool) == 0


async def test_state_with_content_in_it_is_rejected_by_name(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    with pytest.raises(StateTooLargeError, match="'pages'"):
        await put(FencedCheckpointer(pool, claim.fence), a_checkpoint(1, pages="x" * 300_000))


async def test_a_state_with_too_much_content_is_rejected_with_its_largest_key_and_the_run_can_be_released(
    pool: Database,
) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence, content_types=())
    large = a_checkpoint(1, pages="x" * 17_000_000, rest="y" * 1_000)
    large["channel_versions"] = {"pages": "1", "rest": "1"}
    with pytest.raises(StateTooLargeError, match=r"the maximum is 16777216\..* 'pages' with 170000\d\d bytes"):
        await put(saver, large)
    await saver.flush_now()
    assert await saved(pool) == 0


async def test_a_history_of_many_times_the_limit_is_stored_while_each_state_is_within_it(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedCheckpointer(pool, claim.fence, content_types=())
    for nth in range(3):
        draft = a_checkpoint(nth, draft=f"{nth}" * 9_000_000)
        draft["channel_versions"] = {"draft": str(nth)}
        await put(saver, draft, nth)
    assert await saved(pool) == 3


FORGED = [
    ("msgpack", packb(Ext(EXT_CONSTRUCTOR_POS_ARGS, packb(("os", "system", ["touch /tmp/offing-pwned"]))))),
    ("json", b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["touch /tmp/offing-pwned"]}'),
    ("pickle", b"cos\nsystem\n(S'touch /tmp/offing-pwned'\ntR."),
]


def test_the_forged_msgpack_would_run_in_a_serializer_that_admits_any_type(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr("os.system", ran.append)
    JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(FORGED[0])
    assert ran == ["touch /tmp/offing-pwned"]


@pytest.mark.parametrize("blob", FORGED, ids=[kind for kind, _ in FORGED])
def test_a_forged_checkpoint_is_never_executed(blob: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr("os.system", ran.append)
    with contextlib.suppress(ValueError, NotImplementedError, TypeError):
        build_serializer().loads_typed(blob)
    assert ran == []


class Color(StrEnum):
    RED = "red"


class Tone(StrEnum):
    LOW = "low"


def test_enumerations_are_stored_as_their_values_but_for_those_of_a_graphs_content() -> None:
    state = {"stop": Color.RED, Color.RED: [[Color.RED, 1], {"deep": Color.RED}], "tone": Tone.LOW, "list": ["red"]}
    strict = build_serializer((Tone,))
    result = strict.loads_typed(strict.dumps_typed(state))
    assert result == state
    assert {type(result["stop"]), type(result["red"][0][0]), type(result["red"][1]["deep"])} == {str}
    assert all(type(key) is str for key in result)
    assert type(result["tone"]) is Tone
    assert state["stop"] is Color.RED, "the state itself is left alone"


async def written(pool: Database, fence: FencingToken, *writes: tuple[str, object]) -> list[tuple[str, object]]:
    """What another claim finds of what one task wrote before the slice ended."""
    saver, checkpoint = FencedCheckpointer(pool, fence), a_checkpoint(1)
    await put(saver, checkpoint)
    at: RunnableConfig = {"configurable": {"checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
    await saver.aput_writes(at, writes, "task", "path")
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
    result = await FencedCheckpointer(pool, fence).aget_tuple({"configurable": {}})
    assert result is not None
    return [(channel, value) for _, channel, value in result.pending_writes or []]


async def test_what_a_finished_task_wrote_is_kept_for_the_next_claim(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    assert await written(pool, fence, ("heard", ["a"]), ("turn", 2)) == [("heard", ["a"]), ("turn", 2)]


async def test_a_graph_s_own_interrupt_is_kept_and_one_of_the_run_s_context_is_raised_anew(pool: Database) -> None:
    own, ours = Interrupt("Which one?", id="a" * 32), Interrupt("a wait", id=TRANSIENT_INTERRUPT_ID)
    first, second = (await claimed(pool, LOCAL_TENANT)).fence, (await claimed(pool, LOCAL_TENANT)).fence
    assert await written(pool, first, (INTERRUPT, (own,))) == [(INTERRUPT, [own])]
    assert await written(pool, second, (INTERRUPT, (ours,))) == []


@pytest.mark.parametrize("writes", [[("heard", "a"), (ERROR, "broken")], [("heard", "x" * 300_000), ("turn", 1)]])
async def test_a_task_that_failed_or_wrote_too_much_runs_again(
    pool: Database, writes: list[tuple[str, object]]
) -> None:
    assert await written(pool, (await claimed(pool, LOCAL_TENANT)).fence, *writes) == []


async def test_what_tasks_wrote_is_dropped_once_it_is_in_a_checkpoint(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    saver, checkpoint = FencedCheckpointer(pool, fence), a_checkpoint(1)
    at: RunnableConfig = {"configurable": {"checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
    await saver.aput_writes(at, [("heard", "a")], "task")
    await saver.aput(at, a_checkpoint(2), {"step": 1}, {})
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
        rows = await (await connection.execute("select count(*) from checkpoint_write")).fetchone()
    assert rows == (0,)
