"""Which events of earlier claims a claim does not send again, and what it withdraws."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from offing.bus.run_streams import KeptEvent, StreamEvent
from offing.clock import new_id
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import LIFECYCLE, MESSAGES
from offing_workers.earlier_events import EarlierEvents, collect_earlier_events

RUN = new_id()
TASK, OTHER_TASK = "12345678-1234-1234-1234-123456789abc", "22345678-1234-1234-1234-123456789abc"

Sent = tuple[str, Any, int]
"""Name, data and superstep of an event."""


async def test_an_event_that_comes_out_the_same_is_sent_once() -> None:
    earlier = await _collect([("updates", {"a": 1}, 2), ("updates", {"a": 1}, 2)], position=1)
    assert [_takes(earlier, "updates", {"a": 1}) for _ in range(3)] == [True, True, False]
    assert not _takes(earlier, "updates", {"a": 2})


async def test_an_event_of_a_recorded_superstep_may_come_again_later() -> None:
    earlier = await _collect([("updates", {"a": 1}, 1)], position=1)
    assert not _takes(earlier, "updates", {"a": 1})


async def test_the_state_of_the_checkpoint_is_not_sent_again() -> None:
    earlier = await _collect([("values", {"a": 1}, 0), ("values", {"a": 2}, 1)], position=1)
    assert _takes(earlier, "values", {"a": 2})
    assert not _takes(earlier, "values", {"a": 2})  # a later superstep may leave the state as it is
    unchanged = await _collect([("values", {"a": 2}, 0), ("updates", {"b": None}, 1)], position=1)
    assert _takes(unchanged, "values", {"a": 2})
    without_values = await _collect([("values", {"a": 1}, 0), ("updates", {"b": 2}, 1)], position=1)
    assert not _takes(without_values, "values", {"a": 2})


async def test_a_subgraphs_event_is_the_same_although_the_id_of_its_task_differs() -> None:
    earlier = await _collect([(f"custom|inner:{TASK}", 1, 2)], position=1)
    assert _takes(earlier, f"custom|inner:{OTHER_TASK}", 1)


async def test_events_that_did_not_come_again_are_deleted_after_their_superstep() -> None:
    sent = [
        ("values", 0, 1),
        ("checkpoints", {"a": 1}, 1),
        ("updates", 1, 2),
        (f"updates|inner:{TASK}", 1, 2),
        ("custom", 3, 3),
    ]
    earlier = await _collect(sent, position=1)
    assert earlier.end_supersteps(2) == []
    assert earlier.end_supersteps(3) == ["2-0"]
    assert _takes(earlier, "custom", 3)


async def test_messages_after_the_checkpoint_are_withdrawn() -> None:
    chunks = [{"id": "one", "content": "a"}, {"id": "two", "content": "b"}]
    sent = [
        ("messages", [{"id": "zero", "content": "recorded"}, {}], 1),
        *(("messages|inner", [chunk, {"node": "write"}], 2) for chunk in (*chunks, *chunks)),
        ("messages/partial", [chunks[0]], 2),
    ]
    earlier = await _collect(sent, position=1)
    assert earlier.list_withdrawn_ids() == ["1-0", "2-0", "3-0", "4-0", "5-0"]
    withdrawals = [(name, orjson.loads(dump_json(data))) for name, data in earlier.describe_withdrawals()]
    assert [(name, data[0]["type"], data[0]["id"]) for name, data in withdrawals] == [
        ("messages|inner", "remove", "one"),
        ("messages|inner", "remove", "two"),
        ("messages/partial", "remove", "one"),
    ]
    assert withdrawals[0][1][1] == {"node": "write"}


async def test_a_message_of_a_recorded_state_is_not_withdrawn() -> None:
    sent = [("values", {"messages": [{"id": "one"}]}, 1), ("messages", [{"id": "one", "content": "a"}, {}], 2)]
    earlier = await _collect(sent, position=1)
    assert (earlier.list_withdrawn_ids(), list(earlier.describe_withdrawals())) == ([], [])


async def test_a_message_of_a_stored_result_is_withdrawn_only_after_a_loss() -> None:
    sent = [("messages", [{"id": "one", "content": "a"}, {}], 2), ("updates", {"a": {"messages": [{"id": "one"}]}}, 2)]
    assert (await _collect(sent, position=1, was_lost=False)).list_withdrawn_ids() == []
    assert (await _collect(sent, position=1)).list_withdrawn_ids() == ["0-0"]


async def test_an_open_message_of_a_thread_is_finished_and_the_run_begins_again() -> None:
    written = {"message_id": "one", "run_id": "call"}
    sent = [
        (LIFECYCLE, {"event": "running"}, 0),
        (MESSAGES, {"node": "write", "data": {"event": "message-start", **written}}, 1),
        (MESSAGES, {"node": "write", "data": {"event": "content-block-delta", **written}}, 1),
    ]
    earlier = await _collect(sent, position=-2)
    [(name, event)] = earlier.describe_withdrawals()
    assert (name, event["data"]["event"], event["data"]["reason"]) == (MESSAGES, "message-finish", "withdrawn")
    assert (event["node"], event["data"]["message_id"], event["data"]["run_id"]) == ("write", "one", "call")
    assert not _takes(earlier, LIFECYCLE, {"event": "running"})  # clients drop the message when they get it
    ended = {"node": "write", "data": {"event": "message-finish", **written}}
    assert not list((await _collect([*sent, (MESSAGES, ended, 1)], position=-2)).describe_withdrawals())
    quiet = await _collect(sent[:1], position=-2)
    assert _takes(quiet, LIFECYCLE, {"event": "running"})
    assert not _takes(quiet, LIFECYCLE, {"event": "completed"})


def _takes(earlier: EarlierEvents, name: str, data: Any) -> bool:
    return earlier.take(name, orjson.dumps(data))


async def _collect(sent: Sequence[Sent], *, position: int, was_lost: bool = True) -> EarlierEvents:
    entries = [
        KeptEvent(f"{nth}-0", StreamEvent(name, orjson.dumps(data), step), RUN, claim=1)
        for nth, (name, data, step) in enumerate(sent)
    ]
    return await collect_earlier_events(_iterate(entries[::-1]), position, was_lost=was_lost)


async def _iterate(entries: Sequence[KeptEvent]) -> AsyncIterator[KeptEvent]:
    for entry in entries:
        yield entry
