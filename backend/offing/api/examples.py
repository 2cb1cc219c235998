"""One example of each shape on the wire, all of the same run, for the OpenAPI document. A test checks them."""

from typing import Any

RUN = "01980000-0000-7000-8000-00000000000a"
THREAD = "01980000-0000-7000-8000-00000000000b"
SOURCE = "01980000-0000-7000-8000-00000000000c"
ARTEFACT = "01980000-0000-7000-8000-00000000000d"
RATING = "01980000-0000-7000-8000-00000000000e"
AT = "2026-11-21T09:00:00Z"
SNAPSHOT = "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c"
QUESTION = "How does undici reuse connections?"
QUOTE = "A Pool keeps several Client instances connected to the same upstream target."

Example = dict[str, Any]

BUDGET: Example = {"turns": 12, "tokens": 200_000, "usd": 0.5, "seconds": 600}

EXTRACTIVE: Example = {
    "engine": "extractive",
    "model": "",
    "temperature": None,
    "max_tokens": 2048,
    "timeout_seconds": 120,
    "api_base": "",
    "options": {},
}

RUN_OUT: Example = {
    "id": RUN,
    "thread_id": THREAD,
    "question": QUESTION,
    "graph": "agentflow",
    "graph_version": "3f1c",
    "status": "running",
    "stop_reason": None,
    "waiting_for": None,
    "error": None,
    "engines": {"planner": EXTRACTIVE},
    "budget": BUDGET,
    "spent": {"turns": 2, "tokens": 0, "usd": 0, "seconds": 1.4},
    "deadline": None,
    "last_seq": 9,
    "created_at": AT,
    "started_at": AT,
    "ended_at": None,
    "title": None,
}

THREAD_OUT: Example = {"id": THREAD, "title": QUESTION, "created_at": AT, "runs": [RUN_OUT]}

LIVE: Example = {"doing": "search_library: connection pooling", "since": AT, "worker_seen": AT}

STEP: Example = {
    "run_id": RUN,
    "seq": 6,
    "kind": "tool",
    "label": "search",
    "title": "connection pooling",
    "detail": "8 passages in 5 documents",
    "ok": True,
    "ms": 12,
    "tokens": 0,
    "turn": 1,
    "at": AT,
}

SENTENCE: Example = {"id": "s1", "text": QUOTE, "citations": [1], "supported": True, "rejected": []}

CITATION: Example = {
    "number": 1,
    "artefact_id": ARTEFACT,
    "source_id": SOURCE,
    "title": "Pool",
    "start": 120,
    "end": 196,
    "quote": QUOTE,
    "verified": True,
}

REPORT: Example = {
    "run_id": RUN,
    "version": 1,
    "status": "complete",
    "reason": "answered",
    "title": "How undici reuses connections",
    "answer": SENTENCE,
    "sections": [{"heading": "Pools", "sentences": [SENTENCE]}],
    "citations": [CITATION],
    "limits": "Put together from quoted sentences without a language model.",
    "written_by": "extractive",
    "created_at": AT,
}

SOURCE_OUT: Example = {
    "id": SOURCE,
    "collection": "undici",
    "name": "docs/api/Pool.md",
    "title": "Pool",
    "media_type": "text/markdown",
    "bytes": 4210,
    "length": 4188,
    "artefact_id": ARTEFACT,
    "snapshot": SNAPSHOT,
    "added_at": AT,
}

UPLOADED: Example = {"name": "Pool.md", "outcome": "added", "source": SOURCE_OUT, "problem": ""}

HIT: Example = {
    "artefact_id": ARTEFACT,
    "source_id": SOURCE,
    "title": "Pool",
    "heading": "Class: Pool",
    "start": 120,
    "end": 196,
    "text": QUOTE,
    "score": 11.2,
}

PASSAGE: Example = {
    "artefact_id": ARTEFACT,
    "source_id": SOURCE,
    "title": "Pool",
    "name": "docs/api/Pool.md",
    "start": 120,
    "end": 196,
    "before": "Class: Pool\n\n",
    "text": QUOTE,
    "after": "\n\nRequests are not guaranteed to be dispatched in order.",
    "snapshot": SNAPSHOT,
}

RATING_OUT: Example = {
    "id": RATING,
    "run_id": RUN,
    "report_version": 1,
    "claim": "s1",
    "scorer": "person:page",
    "version": 1,
    "value": 1,
    "correction": "",
    "created_at": AT,
}

EXAMPLES: dict[str, Example] = {
    "RunIn": {"question": QUESTION, "graph": "agentflow", "budget": BUDGET, "scope": {"collections": ["undici"]}},
    "RunOut": RUN_OUT,
    "RunDetail": RUN_OUT | {"live": LIVE, "marks": "npnsmvnsm"},
    "RunPage": {"items": [RUN_OUT], "next": None},
    "StepOut": STEP,
    "StepDetail": STEP | {"payload": {"tool": "search_library", "args": {"query": "connection pooling"}}},
    "StepPage": {"items": [STEP], "next": None},
    "WholeStepPage": {"items": [STEP | {"payload": {"tool": "search_library"}}], "next": None},
    "CancelIn": {"mode": "write"},
    "MessageIn": {"text": "Look at keep-alive time-outs as well."},
    "ReportOut": REPORT,
    "ThreadOut": THREAD_OUT,
    "ThreadPage": {"items": [THREAD_OUT], "next": None},
    "SourceOut": SOURCE_OUT,
    "SourcePage": {"items": [SOURCE_OUT], "next": None, "total": 1},
    "CollectionOut": {"name": "undici", "count": 50},
    "UploadOut": {"files": [UPLOADED]},
    "HitPage": {"items": [HIT]},
    "PassageOut": PASSAGE,
    "ErasedOut": {"sources": 1, "snapshots": 1, "passages": 9, "steps": 3},
    "GraphOut": {
        "name": "agentflow",
        "title": "AgentFlow",
        "description": "Plans, acts, checks and writes.",
        "version": "3f1c",
        "roles": ["planner", "executor", "verifier", "generator"],
        "diagram": "graph TD; planner-->executor;",
    },
    "EngineOut": {"name": "extractive", "available": True, "models": [], "note": "Quotes; it is no language model."},
    "RatingIn": {"claim": "s1", "value": 1, "correction": ""},
    "RatingOut": RATING_OUT,
    "TenantOut": {"name": "local", "training_opt_in": False, "daily_spend_usd": 5, "spent_today_usd": 0.12},
    "TenantIn": {"training_opt_in": True},
    "SessionOut": {"tenant": "local", "csrf_token": "Zy0u"},
    "HealthOut": {"status": "ok", "parts": {"postgres": "ok", "redis": "ok"}},
    "Problem": {
        "type": "urn:offing:problem:invalid_input",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "question: String should have at least 3 characters",
        "field": "question",
        "remedy": "Correct it; the accepted values are in /api/v1/openapi.json.",
    },
}
