"""Hostile texts in every place of an installation that a person, a document, a model or a server can fill.

What the API accepts goes through the API. What a worker writes goes through the same storage functions as a worker's.
"""

import hashlib
import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg

from offing.core.answer_draft import AnswerDraft, DraftPart
from offing.core.input_request import InputKind, InputPrompt
from offing.core.prompt_library import LibraryEdit, PromptLibrary, apply_edits
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview, ToolReviewDecisionType
from offing.core.run import FencingToken, RunStatus
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.tool import SourceSpan
from offing.mcp.pins import pin_tools, pins_path, write_pins
from offing.mcp.tool_listing import McpToolListing
from offing.services import prompt_library
from offing.storage import run_files
from tests.api.conftest import Api
from tests.api.shared_reports import build_hostile_report, write_report
from tests.api.test_input_requests import waiting
from tests.api.test_run_views import INSERT_CALL
from tests.hostile_texts import MARKER
from tests.mcp.config_files import entry, written

RUNS = 30
SVG = f"<svg xmlns='http://www.w3.org/2000/svg' onload='{MARKER}'><script>{MARKER}</script></svg>"
DOCUMENTS: Sequence[tuple[str, Callable[[str], str]]] = (
    ("md", lambda text: f"---\ntitle: {text}\nauthor: {text}\n---\n# {text}\n\nA tide. {text}\n\n| {text} | 2 |\n"),
    (
        "html",
        lambda text: (
            f"<html><head><title>{html.escape(text)}</title><meta name=author content='{html.escape(text)}'></head>"
            f"<body><main><h1>{html.escape(text)}</h1><p>A tide. {html.escape(text)}</p>{text}</main></body></html>"
        ),
    ),
    ("txt", lambda text: f"{text}\n\nA tide. {text}\n\nNUL \\0 &#0; and \x1b[31mcontrol\x07 characters.\n"),
)
"""A document of each format with a hostile text as title, author, heading and content."""


@dataclass(frozen=True)
class HostileStack:
    """What the browser opens."""

    ended: UUID
    """A run that has a step of each kind, sources, files, a report and a newer version of it."""
    active: UUID
    """A run that works, with an answer that is being written."""
    waiting: UUID
    """A run with an input request of each kind."""
    source: UUID
    shared: str
    """Path of a shared report."""
    collection: str
    policy: str
    document_count: int
    """Number of documents that the library took."""
    name_count: int
    """Number of names that the API took: titles, tags, presets, keys and labels."""


def write_mcp_config(folder: Path, texts: Sequence[str]) -> Path:
    """Write an operator's configuration of one MCP server whose pinned tools have hostile names and descriptions."""
    tools = [
        McpToolListing(
            text.replace("\n", " ")[:60] if number else "echo",
            text,
            {"type": "object", "title": text, "properties": {text[:80]: {"type": "string", "description": text}}},
        )
        for number, text in enumerate(texts)
    ]
    file = written(folder, entry("https://tools.example/mcp", "tools"))
    write_pins(pins_path(file), {"tools": pin_tools("https://tools.example/mcp", tools)})
    return file


async def fill(api: Api, owner_url: str, texts: Sequence[str], folder: Path) -> HostileStack:
    """Store the texts. `folder` is an empty folder for the files of prompt libraries."""
    sources, collection = await _add_documents(api, texts)
    name_count = await _add_runs(api, texts) + await _add_settings(api, texts)
    ended, shared = await _add_ended_run(api, owner_url, texts, sources)
    await _add_prompt_library(api, texts, folder)
    return HostileStack(
        ended,
        await _add_active_run(api, texts),
        await _add_waiting_run(api, texts),
        UUID(sources[0]["id"]),
        shared,
        collection,
        "lessons",
        len(sources),
        name_count,
    )


async def _add_documents(api: Api, texts: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Upload a document for each text. Returns the sources and the name of a collection."""
    names = iter([text.replace("/", " ").strip()[:190] for text in texts[::5]])
    for start in range(0, len(texts), 25):
        files = [
            ("files", (f"{text[:120]}.{extension}".replace("/", "\u2215"), build(text).encode()))
            for (extension, build), text in zip(cycle(DOCUMENTS), texts[start : start + 25], strict=False)
        ]
        while not (await _upload(api, files, next(names))).is_success:
            pass
    sources: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await api.http.get("/api/v1/library", params={"limit": 100, **cursor})).json()
        sources += page["items"]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    listed = (await api.http.get("/api/v1/library/collections")).json()
    return sources, listed[0]["name"]


async def _upload(api: Api, files: Sequence[tuple[str, tuple[str, bytes]]], collection: str) -> httpx.Response:
    response = await api.http.post("/api/v1/library", files=[*files], data={"collection": collection}, timeout=120)
    assert response.is_success or response.json()["field"] == "collection", response.text
    return response


async def _count_accepted(responses: Sequence[httpx.Response]) -> int:
    """Return how many names were taken. The others are rejected with a reason, and nothing fails."""
    for response in responses:
        assert response.status_code < 500, response.text
    return sum(response.is_success for response in responses)


async def _add_runs(api: Api, texts: Sequence[str]) -> int:
    """Add ended runs whose question, title and tags are hostile. Each leaves a notification."""
    responses: list[httpx.Response] = []
    for number, text in enumerate(texts[:: len(texts) // RUNS]):
        response = await api.http.post("/api/v1/runs", json={"question": f"Why {text}"[:7_000], "graph": "quiet"})
        responses.append(response)
        if not response.is_success:
            continue
        run = UUID(response.json()["id"])
        for change in ({"title": text[:180]}, {"tags": [text[:40], texts[-number - 1][:40]]}, {"pinned": True}):
            responses.append(await api.http.patch(f"/api/v1/runs/{run}", json=change))
        await api.hands.end(await api.hands.claim(run), RunStatus.DONE if number % 2 else RunStatus.FAILED)
    return await _count_accepted(responses)


async def _add_settings(api: Api, texts: Sequence[str]) -> int:
    """Try the texts as names of presets, keys, policies, providers, and as addresses of webhooks."""
    from tests.api.test_installation import session

    responses: list[httpx.Response] = []
    async with session(api) as browser:
        for text in texts[:60]:
            name = text[:90]
            quoted = "".join(f"%{byte:02x}" for byte in text.encode())[:180]
            responses += [
                await api.http.post("/api/v1/question-presets", json={"name": name, "settings": {"graph": "quiet"}}),
                await browser.post("/api/v1/api-keys", json={"name": name, "expires_in_days": 7}),
                await api.http.put(f"/api/v1/tool-policies/{quoted}", json={"policy": {"rules": []}}),
                await api.http.put(f"/api/v1/presets/{quoted}", json={"engines": {}}),
                await api.http.post("/api/v1/webhooks", json={"address": f"http://127.0.0.1:9/{quoted}"}),
                await api.http.post("/api/v1/webhooks", json={"address": text[:2000], "web_ui": text[:400]}),
            ]
    return await _count_accepted(responses)


async def _add_ended_run(
    api: Api, owner_url: str, texts: Sequence[str], sources: Sequence[dict[str, Any]]
) -> tuple[UUID, str]:
    response = await api.http.post("/api/v1/runs", json={"question": f"Is {texts[0]} safe?", "graph": "agentflow"})
    run = UUID(response.json()["id"])
    await api.http.patch(f"/api/v1/runs/{run}", json={"title": texts[3][:180], "tags": [texts[5][:40]]})
    fence = await api.hands.claim(run)
    text_source = cycle(texts)
    for draft in _draft_steps(text_source, sources):
        await api.hands.append(fence, draft)
    await _add_role_calls(api, owner_url, fence, text_source)
    await _add_files(api, run, text_source)
    report = build_hostile_report(texts)
    real = [source for source in sources if source.get("text_id")]
    citations = tuple(
        replace(citation, span=SourceSpan(UUID(source["text_id"]), 0, 5), source_id=UUID(source["id"]))
        for citation, source in zip(report.citations, cycle(real), strict=False)
    )
    await write_report(api, run, replace(report, citations=citations), fence)
    await api.hands.end(fence)
    await _edit_report(api, run, next(text_source))
    created = await api.http.post(f"/api/v1/runs/{run}/shares", json={"label": texts[9][:80]})
    assert created.status_code == 201, created.text
    return run, created.json()["path"]


def _draft_steps(text_source: Iterator[str], sources: Sequence[dict[str, Any]]) -> Iterator[StepDraft]:
    """Return steps of every kind that a graph writes, with hostile titles, details, labels and payloads."""
    parts = list(dict.fromkeys(" ".join(next(text_source)[:250].split()) for _ in range(8)))
    yield StepDraft(StepKind.ANALYSIS, next(text_source), {"role": "analyst", "output": {"sub_questions": parts}})
    kinds = (
        StepKind.PLAN,
        StepKind.TOOL_CALL,
        StepKind.MEMORY,
        StepKind.ROLE_CALL,
        StepKind.NOTE,
        StepKind.REJECTED_COMPLETION,
        StepKind.FAILURE,
        StepKind.USER_MESSAGE,
    )
    for number in range(160):
        payload = {
            "role": "planner",
            "output": {
                next(text_source)[:80]: next(text_source),
                "sub_goal": next(text_source),
                "tool": next(text_source),
            },
            "text": next(text_source),
            "list": [next(text_source), {next(text_source)[:80]: [next(text_source)]}],
        }
        yield StepDraft(
            kinds[number % len(kinds)],
            next(text_source),
            payload,
            label=next(text_source)[:40],
            detail=next(text_source),
            ok=number % 3 > 0,
            turn=number // 8 + 1,
            ms=10,
            call_key=CallKey(number + 1, f"__pregel_pull/{next(text_source)[:60]}", 0, f"d{number}"),
        )
    yield from _draft_tool_results(text_source, sources)
    coverage = [
        {"sub_question": part, "covered": False, "state": "partly", "missing": next(text_source)} for part in parts
    ]
    yield StepDraft(StepKind.VERIFICATION, next(text_source), {"output": {"coverage": coverage}})


def _draft_tool_results(text_source: Iterator[str], sources: Sequence[dict[str, Any]]) -> Iterator[StepDraft]:
    passages = [
        {
            "text_id": source["text_id"],
            "source": source["id"],
            "start": 0,
            "end": 5,
            "title": next(text_source),
            "name": next(text_source),
            "heading": next(text_source),
            "text": next(text_source),
        }
        for source in sources[:40]
    ]
    links = [{"url": next(text_source), "title": next(text_source), "snippet": next(text_source)} for _ in range(60)]
    for tool, content in (("search_library", {"passages": passages}), ("web_search", {"results": links})):
        payload = {
            "tool": tool,
            "args": {"query": next(text_source)},
            "status": "ok",
            "content": content,
            "message": "",
        }
        yield StepDraft(StepKind.TOOL_RESULT, next(text_source), payload, label="search")
    for number in range(20):
        status = ("denied", "failed")[number % 2]
        payload = {
            "tool": next(text_source),
            "args": {"url": next(text_source)},
            "status": status,
            "message": next(text_source),
        }
        payload |= {"content": {}}
        yield StepDraft(StepKind.TOOL_RESULT, next(text_source), payload, label="failed", ok=False)


async def _add_role_calls(api: Api, owner_url: str, fence: FencingToken, text_source: Iterator[str]) -> None:
    for turn in range(4):
        (step,) = await api.hands.append(fence, StepDraft(StepKind.PLAN, next(text_source), turn=turn, ms=5))
        with psycopg.connect(owner_url, autocommit=True) as connection:
            values = (
                fence.run_id,
                step.seq,
                api.tenant,
                next(text_source)[:60],
                next(text_source)[:120],
                10,
                1,
                "0.01",
            )
            connection.execute(INSERT_CALL, values)


async def _add_files(api: Api, run: UUID, text_source: Iterator[str]) -> None:
    files = [(next(text_source)[:100], "image/svg+xml", SVG), (next(text_source)[:100], "text/html", next(text_source))]
    for name, media_type, content in [*files, (next(text_source)[:100], "image/png", next(text_source))]:
        digest = hashlib.sha256(content.encode()).digest()
        async with api.database.transaction(api.tenant) as connection:
            await run_files.upsert_file(
                connection,
                api.tenant,
                run,
                name=name,
                sha256=digest,
                media_type=media_type,
                body=content.encode(),
            )


async def _edit_report(api: Api, run: UUID, text: str) -> None:
    """Save a version in which a person has added a hostile sentence, with a hostile note."""
    report = (await api.http.get(f"/api/v1/runs/{run}/report")).json()
    edit: dict[str, Any] = {
        "base_version": report["version"],
        "title": text[:200],
        "answer": None,
        "sections": [{"heading": text[:100], "sentences": [{"text": text, "layout": "paragraph", "citations": []}]}],
        "note": text[:100],
    }
    response = await api.http.post(f"/api/v1/runs/{run}/report/versions", json=edit)
    assert response.status_code == 201, response.text


async def _add_active_run(api: Api, texts: Sequence[str]) -> UUID:
    run = await api.submit(f"What of {texts[7]}?")
    fence = await api.hands.claim(run)
    await api.hands.notes(fence, texts[:20])
    draft = AnswerDraft("3/planner/0/ab", fence.number, 1, texts[11][:40], texts[12][:40], is_unverified=True)
    await api.hands.live.publish_draft(api.tenant, run, DraftPart(draft, 0, "\n".join(texts[:60])))
    return run


async def _add_waiting_run(api: Api, texts: Sequence[str]) -> UUID:
    text_source = iter(cycle(texts))
    review = ToolReview(
        next(text_source)[:60],
        {next(text_source)[:60]: next(text_source), "body": next(text_source)},
        next(text_source),
        tuple(ToolReviewDecisionType)[:4],
    )
    schema = {
        "type": "object",
        "title": next(text_source),
        "properties": {
            next(text_source)[:60]: {
                "type": "string",
                "title": next(text_source),
                "enum": [next(text_source), next(text_source)],
            }
        },
    }
    run, _ = await waiting(
        api,
        InputPrompt(
            InputKind.FREE_TEXT, next(text_source), next(text_source), choices=(next(text_source), next(text_source))
        ),
        InputPrompt(InputKind.FREE_TEXT, next(text_source)),
        InputPrompt(InputKind.PLAN_REVIEW, next(text_source), steps=tuple(next(text_source) for _ in range(20))),
        InputPrompt(InputKind.APPROVAL, next(text_source), next(text_source)),
        InputPrompt(InputKind.TOOL, next(text_source), next(text_source)),
        InputPrompt(
            InputKind.INTERRUPT,
            next(text_source),
            response_form=ResponseForm(ResponseShape.DECISIONS, (review, review)),
        ),
        InputPrompt(
            InputKind.INTERRUPT, next(text_source), response_form=ResponseForm(ResponseShape.VALUE, schema=schema)
        ),
    )
    return run


async def _add_prompt_library(api: Api, texts: Sequence[str], folder: Path) -> None:
    edits = [LibraryEdit(op="add", text=text[:300]) for text in texts[:20]]
    library, _ = apply_edits(PromptLibrary(), edits, ["r1"])
    await prompt_library.register_library(api.database, api.tenant, "lessons", library, folder)
