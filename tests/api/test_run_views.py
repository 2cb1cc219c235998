"""What a person watches and steers in a run over HTTP: its plan, a search in its steps, nodes, usage and sources."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from offing.core.plan_outline import CONSUMED_FIELD
from offing.core.run import FencingToken
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.usage import UsageDelta
from tests.api.conftest import Api

PARTS = ["Where does the salt come from?", "Why does it stay?"]


def at(run: UUID, view: str) -> str:
    return f"/api/v1/runs/{run}/{view}"


def key(superstep: int, node: str) -> CallKey:
    return CallKey(superstep, f"__pregel_pull/{node}", 0, uuid4().hex)


async def begin(api: Api, graph: str = "agentflow") -> tuple[UUID, FencingToken]:
    run = await api.submit(graph=graph)
    return run, await api.hands.claim(run)


async def analyze(api: Api, fence: FencingToken) -> int:
    payload = {"role": "analyst", "output": {"sub_questions": PARTS}}
    (step,) = await api.hands.append(fence, StepDraft(StepKind.ANALYSIS, "Two parts", payload))
    return step.seq


# The plan


async def test_the_plan_is_that_of_the_analysis_with_the_latest_verification(api: Api) -> None:
    run, fence = await begin(api)
    assert (await api.http.get(at(run, "plan"))).json() == {
        "supports_changes": True, "version": 0, "items": [], "change": None,
    }  # fmt: skip
    version = await analyze(api, fence)
    coverage = [
        {"sub_question": PARTS[0], "covered": True, "state": "", "missing": ""},
        {"sub_question": PARTS[1], "covered": False, "state": "partly", "missing": "The sun."},
    ]
    await api.hands.append(fence, StepDraft(StepKind.VERIFICATION, "So", {"output": {"coverage": coverage}}))
    plan = (await api.http.get(at(run, "plan"))).json()
    assert (plan["version"], plan["change"]) == (version, None)
    assert [(i["text"], i["must_answer"], i["state"], i["missing"]) for i in plan["items"]] == [
        (PARTS[0], False, "covered", ""),
        (PARTS[1], False, "partly", "The sun."),
    ]


async def test_a_change_is_a_recorded_message_and_tells_when_it_is_read_and_used(api: Api) -> None:
    run, fence = await begin(api)
    version = await analyze(api, fence)
    items = [{"text": " Is it\n bitter? ", "must_answer": True}, {"text": PARTS[0]}]
    changed = await api.http.put(at(run, "plan"), json={"items": items, "version": version})
    assert changed.status_code == 200, changed.text
    plan = changed.json()
    assert [(i["text"], i["must_answer"]) for i in plan["items"]] == [("Is it bitter?", True), (PARTS[0], False)]
    seq = plan["change"]["seq"]
    assert plan["version"] == seq
    assert plan["change"] == {"seq": seq, "state": "queued", "consumed_seq": 0, "used_seq": 0}
    step = (await api.http.get(at(run, f"steps/{seq}"))).json()
    assert (step["kind"], step["payload"]["plan"][0]) == (
        "user_message",
        {"text": "Is it bitter?", "must_answer": True},
    )
    assert "1. Is it bitter? (must be answered)" in step["payload"]["text"]

    (note,) = await api.hands.append(fence, StepDraft(StepKind.NOTE, "Read", {CONSUMED_FIELD: seq}))
    delivered = (await api.http.get(at(run, "plan"))).json()["change"]
    assert delivered == {"seq": seq, "state": "delivered", "consumed_seq": note.seq, "used_seq": 0}
    (planned,) = await api.hands.append(fence, StepDraft(StepKind.PLAN, "Look", {}))
    used = (await api.http.get(at(run, "plan"))).json()["change"]
    assert (used["state"], used["used_seq"]) == ("used", planned.seq)


async def test_a_change_of_an_old_plan_is_rejected_and_changes_nothing(api: Api) -> None:
    run, fence = await begin(api)
    version = await analyze(api, fence)
    body = {"items": [{"text": "Is it bitter?"}], "version": version}
    assert (await api.http.put(at(run, "plan"), json=body)).status_code == 200
    again = await api.http.put(at(run, "plan"), json={"items": [{"text": "Is it sweet?"}], "version": version})
    assert again.status_code == 409
    assert again.json()["remedy"] == "Read the plan again, and change that one."
    assert [i["text"] for i in (await api.http.get(at(run, "plan"))).json()["items"]] == ["Is it bitter?"]


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "items"),
        ([{"text": "Part"}] * 2, "items"),
        ([{"text": f"Part {n}"} for n in range(21)], "items"),
        ([{"text": "   "}], "items.0.text"),
        ([{"text": "x" * 301}], "items.0.text"),
        ([{"text": "Part", "done": True}], "items.0.done"),
    ],
)
async def test_a_plan_is_bounded(api: Api, items: list[dict[str, Any]], field: str) -> None:
    run, _ = await begin(api)
    rejected = await api.http.put(at(run, "plan"), json={"items": items, "version": 0})
    assert (rejected.status_code, rejected.json()["field"]) == (422, field)


async def test_a_graph_without_a_plan_and_an_ended_run_take_no_change(api: Api) -> None:
    body = {"items": [{"text": "Is it bitter?"}], "version": 0}
    run, _ = await begin(api, "quiet")
    assert (await api.http.get(at(run, "plan"))).json()["supports_changes"] is False
    rejected = await api.http.put(at(run, "plan"), json=body)
    assert (rejected.status_code, rejected.json()["remedy"]) == (
        409,
        "Send the run a message that says what to do instead.",
    )
    run, fence = await begin(api)
    assert (await api.http.put(at(run, "plan"), json=body)).status_code == 200
    await api.hands.end(fence)
    assert (await api.http.put(at(run, "plan"), json=body)).status_code == 409
    assert (await api.http.get(at(run, "plan"))).json()["change"]["state"] == "too_late"


async def test_an_analysis_of_another_shape_is_no_plan(api: Api) -> None:
    run, fence = await begin(api)
    for output in ("text", {"sub_questions": "one"}, {"sub_questions": [1, None]}, None):
        await api.hands.append(fence, StepDraft(StepKind.ANALYSIS, "Odd", {"output": output}))
        await api.hands.append(fence, StepDraft(StepKind.VERIFICATION, "Odd", {"output": output}))
        assert (await api.http.get(at(run, "plan"))).json()["items"] == []


# Search in the steps


async def test_text_is_found_in_what_steps_show_and_record_but_not_in_names_of_fields(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    written = await api.hands.append(
        fence,
        StepDraft(StepKind.NOTE, "Rivers carry it", {"text": "nothing"}),
        StepDraft(StepKind.NOTE, "Second", {"deep": [{"text": "far away, RIVERS (a+b) run"}]}, detail="in short"),
        StepDraft(StepKind.NOTE, "Third", {"rivers": 1}),
        StepDraft(StepKind.NOTE, "海水为什么是咸的", {"text": "因为河流"}),
    )
    first, second, _, chinese = (step.seq for step in written)

    async def search(q: str) -> list[tuple[int, str]]:
        page = (await api.http.get(at(run, "step-matches"), params={"q": q})).json()
        assert page["total"] == len(page["items"])
        return [(item["seq"], item["excerpt"]) for item in page["items"]]

    assert await search("rivers") == [(first, ""), (second, "far away, RIVERS (a+b) run")]
    assert await search("(A+B)") == [(second, "far away, RIVERS (a+b) run")]
    assert await search("in SHORT") == [(second, "in short")]
    assert await search("河流") == [(chinese, "因为河流")]
    for harmless in (".*", '"', "\\", "%", "a\nb", "$.**"):
        assert await search(harmless) == [], harmless


async def test_a_search_comes_in_pages_with_the_number_of_all_matches(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    await api.hands.notes(fence, [f"brine {n}" for n in range(7)])
    first = (await api.http.get(at(run, "step-matches"), params={"q": "brine", "limit": 4})).json()
    assert (len(first["items"]), first["total"], first["next"]) == (4, 7, str(first["items"][-1]["seq"]))
    rest = await api.http.get(at(run, "step-matches"), params={"q": "brine", "limit": 4, "after": first["next"]})
    assert [i["seq"] for i in rest.json()["items"]] == [6, 7, 8]
    assert (rest.json()["total"], rest.json()["next"]) == (None, None)
    for bad in ({"limit": 1001}, {"limit": 0}, {"q": "x" * 201}, {"after": -1}):
        assert (await api.http.get(at(run, "step-matches"), params=bad)).status_code == 422, bad


async def test_an_excerpt_of_a_long_text_is_short_and_shows_the_match(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    await api.hands.append(fence, StepDraft(StepKind.NOTE, "Long", {"text": "a " * 5000 + "needle" + " b" * 5000}))
    (match,) = (await api.http.get(at(run, "step-matches"), params={"q": "needle"})).json()["items"]
    assert "needle" in match["excerpt"]
    assert len(match["excerpt"]) <= 202


# Nodes and usage


async def test_nodes_have_their_visits_durations_and_steps(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    drafts = [
        StepDraft(StepKind.PLAN, "One", ms=40, tokens=5, call_key=key(1, "planner")),
        StepDraft(StepKind.TOOL_CALL, "Call", ms=10, call_key=key(2, "executor")),
        StepDraft(StepKind.TOOL_RESULT, "Result", ms=30, call_key=key(2, "executor>3:__pregel_pull/inner")),
        StepDraft(StepKind.PLAN, "Two", ms=60, tokens=7, call_key=key(3, "planner")),
        StepDraft(StepKind.NOTE, "Earlier", call_key=CallKey(4, "__pregel_push/0/False", 0, "d")),
        StepDraft(StepKind.NOTE, "Sent", ms=8, call_key=CallKey(5, "__pregel_push/0/False", 0, "d", "part")),
        StepDraft(StepKind.NOTE, "Sent", ms=9, call_key=CallKey(5, "__pregel_push/1/False", 0, "d", "part")),
    ]
    for draft in drafts:
        await api.hands.append(fence, draft)
    nodes = (await api.http.get(at(run, "nodes"))).json()["items"]
    assert [(n["node"], n["visits"], n["steps"], n["ms"], n["tokens"]) for n in nodes] == [
        ("planner", 2, 2, 100, 12),
        ("executor", 1, 2, 40, 0),
        ("", 1, 1, 0, 0),
        ("part", 1, 2, 17, 0),
    ]
    matches = (await api.http.get(at(run, "step-matches"), params={"node": "executor"})).json()
    assert [item["seq"] for item in matches["items"]] == [3, 4]
    both = (await api.http.get(at(run, "step-matches"), params={"node": "planner", "q": "two"})).json()
    assert [item["seq"] for item in both["items"]] == [5]


INSERT_CALL = """
    insert into app.role_call (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling,
                               prompt_tokens, completion_tokens, cached_prompt_tokens, reasoning_tokens, cost_usd,
                               priced, failed_attempts, trainable, is_accepted, attempt, problem)
    values (%s, %s, %s, %s, 'litellm', %s, '[]', '', '{}', %s, %s, 0, 0, %s, true, '[]', 'none', true, 1, '')
"""


async def add_call(api: Api, owner_url: str, fence: FencingToken, role: str, turn: int, tokens: int) -> None:
    (step,) = await api.hands.append(
        fence, StepDraft(StepKind.PLAN, role, turn=turn, ms=5), spent=UsageDelta(tokens=tokens)
    )
    with psycopg.connect(owner_url, autocommit=True) as connection:
        values = (fence.run_id, step.seq, api.tenant, role, "m", tokens, 1, Decimal("0.01"))
        connection.execute(INSERT_CALL, values)


async def test_usage_is_by_role_and_model_and_grows_over_turns(api: Api, owner_url: str) -> None:
    run, fence = await begin(api, "quiet")
    assert (await api.http.get(at(run, "usage"))).json() == {"roles": [], "points": []}
    for role, turn, tokens in (("analyst", 0, 9), ("planner", 1, 19), ("planner", 2, 29), ("writer", 0, 99)):
        await add_call(api, owner_url, fence, role, turn, tokens)
    usage = (await api.http.get(at(run, "usage"))).json()
    assert {(r["role"], r["model"], r["calls"], r["prompt_tokens"], r["cost_usd"]) for r in usage["roles"]} == {
        ("planner", "m", 2, 48, 0.02),
        ("analyst", "m", 1, 9, 0.01),
        ("writer", "m", 1, 99, 0.01),
    }
    assert usage["points"] == [
        {"turn": 0, "tokens": 10, "cost_usd": 0.01},
        {"turn": 1, "tokens": 30, "cost_usd": 0.02},
        {"turn": 2, "tokens": 160, "cost_usd": 0.04},
    ]


# Sources


async def result(
    api: Api, fence: FencingToken, tool: str, args: dict[str, Any], content: dict[str, Any], **more: Any
) -> int:
    status = more.pop("status", "ok")
    payload = {"tool": tool, "args": args, "status": status, "content": content, "message": more.pop("message", "")}
    draft = StepDraft(StepKind.TOOL_RESULT, tool, payload, ok=status == "ok", **more)
    return (await api.hands.append(fence, draft))[0].seq


def passage(source: UUID, start: int, end: int, title: str = "Salt") -> dict[str, Any]:
    text_id = str(UUID(int=source.int ^ 1))
    return {"text_id": text_id, "source": str(source), "start": start, "end": end, "title": title, "text": "…"}


async def test_sources_say_what_came_of_each_and_why(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    cited = await api.hands.document()
    read, listed, discarded = uuid4(), uuid4(), uuid4()
    passages = [passage(s, 0, 9) for s in (cited, read, listed, discarded)]
    searched = await result(api, fence, "search_library", {"query": "salt"}, {"passages": passages}, label="search")
    window = passage(read, 9, 20, "Read")
    opened = await result(api, fence, "read_source", {"source": str(read)}, window, label="read")
    hits = [{"url": "https://sea.example/a", "title": "A"}, {"url": "https://sea.example/b", "title": "B"}]
    await result(api, fence, "web_search", {"query": "salt"}, {"results": hits}, label="search")
    for url, status, message in (
        ("https://sea.example/b", "denied", "fetch_page is not allowed: too many calls."),
        ("https://gone.example", "failed", "The page answered 404."),
    ):
        await result(api, fence, "fetch_page", {"url": url}, {}, status=status, message=message, label="failed")
    judgment = {"role": "judge", "output": {"why": "Another sea.", "helps": True, "discard": ["E4", "E99"]}}
    await api.hands.append(fence, StepDraft(StepKind.ROLE_CALL, "Judged", judgment, label="judge"))
    await api.hands.report(fence, cited)
    body = (await api.http.get(at(run, "sources"))).json()
    assert (body["total"], body["is_complete"]) == (7, True)
    assert [(s["key"], s["state"], s["reason"]) for s in body["items"]] == [
        (str(cited), "cited", ""),
        (str(read), "read", ""),
        (str(listed), "found", ""),
        (str(discarded), "rejected", "Another sea."),
        ("https://sea.example/a", "found", ""),
        ("https://sea.example/b", "blocked", "fetch_page is not allowed: too many calls."),
        ("https://gone.example", "failed", "The page answered 404."),
    ]
    assert (body["items"][1]["step_seqs"], body["items"][1]["span_count"]) == ([searched, opened], 2)


async def test_results_of_other_tools_in_any_shape_are_no_sources(api: Api) -> None:
    run, fence = await begin(api, "quiet")
    for content in (
        {"results": "text"},
        {"passages": {"a": 1}},
        {"passages": [1, "two", {"url": 3}, {"text_id": "no id", "source": "x", "start": "a", "end": None}]},
        {"text_id": str(uuid4()), "source": "nowhere", "start": 0, "end": 1},
        {},
    ):
        await result(api, fence, "odd", {"source": 1}, content, label="odd")
    body = (await api.http.get(at(run, "sources"))).json()
    assert [source["key"] for source in body["items"]] == ["3"]
