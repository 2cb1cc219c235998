"""The fenced saver: it saves for the owner, keeps one checkpoint a turn, and never runs what it reads."""

import contextlib

import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_POS_ARGS, JsonPlusSerializer
from ormsgpack import Ext, packb

from offing.core.errors import Fenced, StateTooLarge
from offing.storage.checkpoints import FencedSaver, serializer
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import claimed, older


def a_checkpoint(turn: int, **values: object) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"turn": turn, **values}
    return checkpoint


async def put(saver: FencedSaver, checkpoint: Checkpoint, step: int = 0) -> None:
    await saver.aput({"configurable": {"checkpoint_ns": ""}}, checkpoint, {"step": step}, {})


async def saved(pool: Database) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select count(*) from checkpoint")).fetchone()
    assert row is not None
    return row[0]


async def test_what_was_saved_is_read_back(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    checkpoint = a_checkpoint(7)
    await put(FencedSaver(pool, claim.fence, term=30), checkpoint, 5)
    found = await FencedSaver(pool, claim.fence, term=30).aget_tuple({"configurable": {}})
    assert found is not None
    assert found.checkpoint == checkpoint
    assert found.metadata.get("step") == 5


async def test_one_checkpoint_a_turn_is_kept(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedSaver(pool, claim.fence, term=30, turn_key="turn")
    for turn in (1, 1, 1, 2, 2, 3):
        await put(saver, a_checkpoint(turn))
    assert await saved(pool) == 0
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.save(connection)
    assert await saved(pool) == 3


async def test_a_save_that_was_rolled_back_is_made_again(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedSaver(pool, claim.fence, term=30, turn_key="turn")
    await put(saver, a_checkpoint(1))
    with contextlib.suppress(ZeroDivisionError):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await saver.save(connection)
            raise ZeroDivisionError
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.save(connection)
    saver.saved()
    assert await saved(pool) == 1


async def test_a_flush_saves_the_position_within_a_turn(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver = FencedSaver(pool, claim.fence, term=30, turn_key="turn")
    await put(saver, a_checkpoint(1), 1)
    await put(saver, a_checkpoint(1), 2)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
        position = await FencedSaver(pool, claim.fence, term=30).begin(connection)
    assert position is not None
    assert (position.run, position.superstep) == (claim.fence.run, 2)


async def test_a_stale_worker_saves_nothing(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    with pytest.raises(Fenced):
        await put(FencedSaver(pool, older(claim.fence), term=30), a_checkpoint(1))
    assert await saved(pool) == 0


async def test_state_with_content_in_it_is_refused_by_name(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    with pytest.raises(StateTooLarge, match="'pages'"):
        await put(FencedSaver(pool, claim.fence, term=30), a_checkpoint(1, pages="x" * 300_000))


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
        serializer().loads_typed(blob)
    assert ran == []
