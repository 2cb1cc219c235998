"""Answers that are being written, through Redis, the event stream and the list of drafts."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from offing.core.answer_draft import AnswerDraft, DraftEnd, DraftPart
from offing.core.run import RunStatus
from offing.core.step import StepDraft, StepKind
from tests.api.conftest import Api
from tests.api.sse import following

DRAFT = AnswerDraft("3/planner/0/ab", fence=1, attempt=1, role="planner", label="plan")
REPORT = AnswerDraft("9/generator/0/cd", fence=1, attempt=1, role="generator", label="write", is_unverified=True)


def texts_of(events: list[Any]) -> dict[str, str]:
    """The drafts as a viewer shows them."""
    texts: dict[str, str] = {}
    for event in [one for one in events if one.name.startswith("draft")]:
        call_id = event.data["call_id"]
        assert event.id is None
        if event.name == "draft":
            texts[call_id] = texts.get(call_id, "")[: event.data["offset"]] + event.data["text"]
        else:
            del texts[call_id]
    return texts


async def list_drafts(api: Api, run_id: UUID) -> list[dict[str, Any]]:
    return (await api.http.get(f"/api/v1/runs/{run_id}/drafts")).json()["items"]


async def test_a_draft_grows_on_the_stream_until_its_step_replaces_it(api: Api) -> None:
    run = await api.submit()
    fence, live = await api.hands.claim(run), api.hands.live
    draft = replace(DRAFT, fence=fence.number)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await live.publish_draft(api.tenant, run, DraftPart(draft, 0, "first "))
        await live.publish_draft(api.tenant, run, DraftPart(draft, 6, "then 東京"))
        await stream.until(lambda s: texts_of(s.seen) == {draft.call_id: "first then 東京"})
        await api.hands.append(fence, StepDraft(StepKind.PLAN, "a plan"))
        await live.end_draft(api.tenant, run, DraftEnd(draft.call_id, fence.number))
        await stream.until(lambda s: texts_of(s.seen) == {})
    assert stream.named("draft")[0].data | {"offset": 0, "text": ""} == {
        "run_id": str(run),
        "call_id": draft.call_id,
        "attempt": 1,
        "role": "planner",
        "label": "plan",
        "is_unverified": False,
        "offset": 0,
        "text": "",
    }
    assert [event.name for event in stream.seen if event.name in ("step", "draft_end")][-2:] == ["step", "draft_end"]


async def test_a_viewer_that_connects_late_gets_the_draft_so_far_and_then_the_rest(api: Api) -> None:
    run = await api.submit()
    fence, live = await api.hands.claim(run), api.hands.live
    report = replace(REPORT, fence=fence.number)
    await live.publish_draft(api.tenant, run, DraftPart(report, 0, "é" * 10))
    await live.publish_draft(api.tenant, run, DraftPart(report, 10, " more"))
    assert [(item["text"], item["is_unverified"]) for item in await list_drafts(api, run)] == [
        ("é" * 10 + " more", True)
    ]
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: texts_of(s.seen) == {report.call_id: "é" * 10 + " more"})
        await live.publish_draft(api.tenant, run, DraftPart(report, 15, "!"))
        await stream.until(lambda s: texts_of(s.seen) == {report.call_id: "é" * 10 + " more!"})


async def test_another_attempt_replaces_the_text_of_a_lost_one(api: Api) -> None:
    run = await api.submit()
    fence, live = await api.hands.claim(run), api.hands.live
    draft = replace(DRAFT, fence=fence.number)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        await live.publish_draft(api.tenant, run, DraftPart(draft, 0, "lost"))
        await live.publish_draft(api.tenant, run, DraftPart(replace(draft, attempt=2), 0, "kept"))
        await stream.until(lambda s: texts_of(s.seen) == {draft.call_id: "kept"})
    assert stream.named("draft")[-1].data["attempt"] == 2


async def test_what_a_crashed_worker_left_is_withdrawn_by_the_next_claim_or_when_no_worker_has_the_run(
    api: Api,
) -> None:
    run = await api.submit()
    fence, live = await api.hands.claim(run), api.hands.live
    await live.publish_draft(api.tenant, run, DraftPart(replace(DRAFT, fence=fence.number), 0, "left"))
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: texts_of(s.seen) != {})
        await live.end_draft(api.tenant, run, DraftEnd("", fence.number + 1))
        await stream.until(lambda s: texts_of(s.seen) == {})
        await live.publish_draft(api.tenant, run, DraftPart(replace(DRAFT, fence=fence.number), 0, "a zombie"))
        await api.hands.end(fence, RunStatus.FAILED)
        await stream.until(lambda s: s.closed)
    assert texts_of(stream.seen) == {}
    assert await list_drafts(api, run) == []


async def test_a_draft_in_redis_that_offing_did_not_write_is_not_shown(api: Api) -> None:
    run = await api.submit()
    await api.hands.claim(run)
    redis: Any = api.hands.live._redis  # pyright: ignore[reportPrivateUsage]
    await redis.hset(f"offing:drafts:{api.tenant}:{run}", "x", b'["only an id"]')
    assert await list_drafts(api, run) == []


async def test_the_drafts_of_another_tenant_are_not_shown(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.live.publish_draft(api.tenant, run, DraftPart(replace(DRAFT, fence=fence.number), 0, "mine"))
    await api.hands.live.publish_draft(UUID(int=7), run, DraftPart(replace(REPORT, fence=fence.number), 0, "theirs"))
    assert [item["text"] for item in await list_drafts(api, run)] == ["mine"]
