"""Training records over HTTP: one run whole, and a stream that continues from its cursor."""

from typing import Any

import orjson
import pytest

from offing.core.trajectory import BoundaryReason
from offing.services.trajectories import get_trajectory, get_trajectory_page
from offing.storage import segments
from tests.api.conftest import Api
from tests.storage.rollouts import A, Collected


@pytest.fixture
def collected(api: Api, owner_url: str) -> Collected:
    return Collected(api.database, api.tenant, owner_url)


async def streamed(api: Api, **query: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The records' lines and the last line."""
    response = await api.http.get("/api/v1/trajectories", params=query)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    *lines, last = [orjson.loads(line) for line in response.content.splitlines()]
    return lines, last


async def test_a_stream_continues_from_any_cursor_without_loss_or_repetition(api: Api, collected: Collected) -> None:
    created = [await collected.rollout(minutes=n) for n in range(5)]
    whole, last = await streamed(api)
    assert [line["record"]["run_id"] for line in whole] == [str(run) for run in created]
    assert last["more"] is False
    some, cut = await streamed(api, limit=2)
    assert cut["more"] is True
    assert [line["record"]["run_id"] for line in some] == [str(run) for run in created[:2]]
    for done, line in enumerate(whole, 1):
        rest, _ = await streamed(api, cursor=line["cursor"])
        assert [line["record"]["run_id"] for line in rest] == [str(run) for run in created[done:]]
    late = await collected.rollout(minutes=9)
    new, _ = await streamed(api, cursor=last["cursor"])
    assert [line["record"]["run_id"] for line in new] == [str(late)]
    nothing, end = await streamed(api, cursor=new[-1]["cursor"])
    assert nothing == []
    assert end["cursor"] == new[-1]["cursor"]


async def test_every_format_of_lines_streams(api: Api, collected: Collected) -> None:
    group = collected.group()
    await collected.rollout(A("good", tool=True), A("more"), group_id=group, reward=1.0)
    await collected.rollout(A("bad"), group_id=group, member=1, reward=0.0)
    for format, member in {
        "rows": "token_ids", "tinker": "model_input", "jsonl_chat": "messages", "pairs": "chosen", "atif": "steps",
    }.items():  # fmt: skip
        lines, _ = await streamed(api, format=format)
        assert lines, format
        assert member in lines[0]["record"]


async def test_filters_and_what_they_reject(api: Api, collected: Collected) -> None:
    await collected.rollout(reward=0.25)
    assert len((await streamed(api, min_reward=0.2, outcome="answered", policy="planner@1"))[0]) == 1
    assert (await streamed(api, min_reward=0.3))[0] == []
    assert (await streamed(api, role="nobody"))[0] == []
    for field, value in {"cursor": "nonsense", "kind": "interactive", "format": "parquet"}.items():
        response = await api.http.get("/api/v1/trajectories", params={field: value})
        assert response.status_code == 422, field
        assert field in response.json()["field"]


async def test_what_people_asked_is_there_when_they_have_agreed(api: Api, collected: Collected) -> None:
    run = await collected.rollout(A("text", ids=False), kind="interactive")
    await api.http.patch("/api/v1/tenant", json={"training_opt_in": True})
    lines, _ = await streamed(api, kind="interactive", format="jsonl_chat")
    assert [line["record"]["run_id"] for line in lines] == [str(run)]
    assert (await streamed(api, format="jsonl_chat"))[0] == []


async def test_reference_answers_are_not_given_out_unasked(api: Api, collected: Collected) -> None:
    await collected.rollout(group_id=collected.group(answers=["the secret"]))
    for format in ("rows", "tinker", "jsonl_chat", "atif"):
        response = await api.http.get("/api/v1/trajectories", params={"format": format})
        assert "the secret" not in response.text
        message = await api.http.get("/api/v1/trajectories", params={"format": format, "include_references": "true"})
        assert "the secret" in message.text


async def test_another_tenant_is_given_nothing(api: Api, collected: Collected) -> None:
    run = await collected.rollout()
    response = await api.other.get("/api/v1/trajectories")
    assert response.text.count("\n") == 1
    assert (await api.other.get(f"/api/v1/runs/{run}/trajectory")).status_code == 404
    assert (await api.nobody.get("/api/v1/trajectories")).status_code == 401


async def test_a_run_is_read_turn_by_turn_with_its_tokens(api: Api, collected: Collected) -> None:
    run = await collected.rollout(
        A("first"), A("second", boundary_reason=BoundaryReason.MEMORY_EDIT), A("third", ids=False)
    )
    collected.score(run, "judge", None, failure="no answer")
    body = (await api.http.get(f"/api/v1/runs/{run}/trajectory", params={"limit": 2})).json()
    assert [s["boundary_reason"] for s in body["segments"]] == ["root", "memory_edit"]
    assert body["scores"][0]["failure"] == "no answer"
    one, two = body["role_calls"]
    assert one["completion"] == "first"
    assert (
        len(one["tokens"]["completion_ids"]) == len(one["tokens"]["logprobs"]) == len(one["tokens"]["loss_mask"]) == 6
    )
    assert one["spans"] == [{"kind": "action", "start_char": 0, "end_char": 3, "start_token": 0, "end_token": 3}]
    assert two["segment"] == 1
    rest = (await api.http.get(f"/api/v1/runs/{run}/trajectory", params={"after": body["next"]})).json()
    (three,) = rest["role_calls"]
    assert (three["tokens"], three["trainable"], rest["next"]) == (None, "sft", None)
    assert three["messages"][1] == {"role": "assistant", "text": "second", "role_call_seq": two["seq"]}


@pytest.mark.parametrize("limit", [1, 2, 3, 9])
async def test_the_pages_of_a_trajectory_are_the_parts_of_the_whole(api: Api, collected: Collected, limit: int) -> None:
    run = await collected.rollout(
        A("first", tool=True), A("second"), A("third", boundary_reason=BoundaryReason.MEMORY_EDIT), A("fourth"),
        A("fifth"), A("sixth", ids=False, boundary_reason=BoundaryReason.MEMORY_EDIT), A("seventh", ids=False),
    )  # fmt: skip
    whole = await get_trajectory(api.database, api.tenant, run)
    after, parts = 0, list[Any]()
    while after is not None:
        page = await get_trajectory_page(api.database, api.tenant, run, after, limit)
        assert page.trajectory.segments == whole.trajectory.segments
        assert 0 < len(page.trajectory.role_calls) <= limit
        parts += page.trajectory.role_calls
        after = page.next_after
    assert [as_plain(call) for call in parts] == [as_plain(call) for call in whole.trajectory.role_calls]


def as_plain(call: Any) -> tuple[object, ...]:
    """What a page says about a role call."""
    return (call.seq, call.turn, call.at, call.messages, call.completion, call.spans, call.tokens, call.segment_idx)


async def test_a_page_of_a_trajectory_reads_only_the_segments_that_it_continues(api: Api, collected: Collected) -> None:
    edited = BoundaryReason.MEMORY_EDIT
    run = await collected.rollout(*(A(f"call {n}", boundary_reason=edited if n % 4 == 0 else None) for n in range(40)))
    async with api.database.transaction(api.tenant) as connection:
        seqs = [call.seq for call in await segments.read_role_calls(connection, run)]
        values = {"run": run, "after": seqs[21], "limit": 2}
        read = [row[0] for row in await (await connection.execute(segments.LIST_ROLE_CALL_PAGE, values)).fetchall()]
    assert read == seqs[20:24]
