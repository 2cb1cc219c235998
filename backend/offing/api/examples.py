"""One example of each API schema for the OpenAPI document, all of the same run. A test checks them."""

from typing import Any

from offing.api.example_values import (
    EXTRACTIVE_ENGINE_EXAMPLE,
    QUOTE,
    RUN_ID,
    SNAPSHOT_SHA256,
    SOURCE_ID,
    TEXT_ID,
    TIMESTAMP,
    Example,
)
from offing.api.installation_examples import INSTALLATION_EXAMPLES
from offing.api.library_examples import LIBRARY_EXAMPLES
from offing.api.schemas import input_requests, langgraph_runs, run_tree, run_views
from offing.api.training_examples import TRAINING_EXAMPLES

THREAD_ID = "01980000-0000-7000-8000-00000000000b"
EVENT_ID = "01980000-0000-7000-8000-000000000010"
WEBHOOK_ID = "01980000-0000-7000-8000-000000000011"
SHARE_ID = "01980000-0000-7000-8000-00000000000f"
RATING_ID = "01980000-0000-7000-8000-00000000000e"
QUESTION = "How does undici reuse connections?"

TOKEN_DETAILS_EXAMPLE: Example = {
    "prompt_tokens": 5200,
    "completion_tokens": 900,
    "cached_prompt_tokens": 3800,
    "reasoning_tokens": 250,
}
BUDGET_EXAMPLE: Example = {"max_turns": 12, "max_tokens": 200_000, "max_cost_usd": 0.5, "max_seconds": 600}


PROVIDER_TEST_EXAMPLE: Example = {
    "model": "openai/gpt-5-mini",
    "tested_at": TIMESTAMP,
    "seconds": 6.2,
    "cost_usd": 0.0011,
    "priced": True,
    "tokens": 910,
    "capabilities": [{"name": "tool call", "outcome": "works", "detail": "1.4 s"}],
}

PROVIDER_EXAMPLE: Example = {
    "name": "openai",
    "provider": "openai",
    "api_base": "",
    "max_concurrent_calls": None,
    "key_set": True,
    "key_set_at": TIMESTAMP,
    "created_at": TIMESTAMP,
    "updated_at": TIMESTAMP,
    "last_test": PROVIDER_TEST_EXAMPLE,
}

PROVIDER_KIND_EXAMPLE: dict[str, Any] = {
    "name": "openai",
    "title": "OpenAI",
    "key_page": "https://platform.openai.com/api-keys",
    "suggested_models": ["gpt-5-mini", "gpt-5.2"],
    "is_server": False,
    "needs_address": False,
    "default_address": "",
    "environment_key": False,
}

PROVIDER_MODELS_EXAMPLE: dict[str, Any] = {
    "items": [
        {
            "name": "gpt-5-mini",
            "context_tokens": 272000,
            "input_usd_per_million": 0.25,
            "output_usd_per_million": 2,
            "calls_tools": True,
            "follows_schema": True,
            "reads_images": True,
            "reasons": True,
        }
    ],
    "total": 1,
    "source": "table",
    "problem": "",
}

PRESET_EXAMPLE: Example = {
    "name": "fast",
    "engines": {"all": EXTRACTIVE_ENGINE_EXAMPLE | {"engine": "litellm", "model": "openai/gpt-5-mini"}},
    "budget": {"max_turns": 4, "max_tokens": None, "max_cost_usd": 0.1, "max_seconds": 180},
    "built_in": True,
}

QUARTILES_EXAMPLE: Example = {"low": 3, "median": 4, "high": 7}

RUN_STATISTICS_EXAMPLE: Example = {
    "graph": "agentflow",
    "models": ["litellm:openai/gpt-5-mini"],
    "runs": 34,
    "turns": QUARTILES_EXAMPLE,
    "seconds_per_turn": {"low": 6.1, "median": 8.4, "high": 12.0},
    "tokens_per_turn": {"low": 2400, "median": 4100, "high": 6200},
    "cost_usd_per_turn": {"low": 0.001, "median": 0.0016, "high": 0.0024},
}

QUESTION_PRESET_EXAMPLE: Example = {
    "id": "01980000-0000-7000-8000-00000000000f",
    "name": "Legal check",
    "settings": {
        "graph": "agentflow",
        "budget": BUDGET_EXAMPLE,
        "scope": {"collections": ["contracts"], "offline": True},
        "report_style": {"length": "brief", "language": "de", "template": ""},
        "interactions": ["plan_review"],
        "tool_policy": "reading",
    },
    "created_at": TIMESTAMP,
    "updated_at": TIMESTAMP,
}

RUN_EXAMPLE: Example = {
    "id": RUN_ID,
    "thread_id": THREAD_ID,
    "question": QUESTION,
    "graph": "agentflow",
    "graph_version": "3f1c",
    "status": "running",
    "stop_reason": None,
    "waiting_for": None,
    "waiting_since": None,
    "error": None,
    "engines": {"planner": EXTRACTIVE_ENGINE_EXAMPLE},
    "scope": {"collections": ["papers"], "sources": [], "web": True, "code": False, "mcp": []},
    "budget": BUDGET_EXAMPLE,
    "usage": {"turns": 2, "tokens": 0, "cost_usd": 0, "seconds": 1.4},
    "deadline": None,
    "last_seq": 9,
    "created_at": TIMESTAMP,
    "started_at": TIMESTAMP,
    "ended_at": None,
    "title": None,
    "given_title": "",
    "tags": ["networking"],
    "pinned_at": None,
    "archived_at": None,
    "match": None,
    "pending_input_requests": 0,
    "interrupted": False,
    "forked_from_id": None,
    "forked_at_seq": None,
}

MATCH_EXAMPLE: Example = {"location": "question", "excerpt": QUESTION, "marks": [{"start": 9, "end": 15}]}

DELETION_EXAMPLE: Example = {"run_ids": [RUN_ID], "child_runs": 2, "kept_fork_ids": []}

THREAD_EXAMPLE: Example = {"id": THREAD_ID, "title": QUESTION, "created_at": TIMESTAMP, "runs": [RUN_EXAMPLE]}

LIVE_STATUS_EXAMPLE: Example = {
    "current_action": "search_library: connection pooling",
    "since": TIMESTAMP,
    "worker_heartbeat_at": TIMESTAMP,
}

DRAFT_EXAMPLE: Example = {
    "run_id": RUN_ID,
    "call_id": "3/planner/0/9f86d081884c",
    "attempt": 1,
    "role": "planner",
    "label": "plan",
    "is_unverified": False,
    "offset": 0,
    "text": "The pool's size is not known yet.",
}

STEP_EXAMPLE: Example = {
    "run_id": RUN_ID,
    "seq": 6,
    "kind": "tool_result",
    "label": "search",
    "title": "connection pooling",
    "detail": "8 passages from 5 sources",
    "summary": {
        "code": "library_searched",
        "parameters": {"passages": 8, "sources": 5, "origin": "", "number": 0, "size": 0},
    },
    "ok": True,
    "ms": 12,
    "tokens": 0,
    "turn": 1,
    "at": TIMESTAMP,
}

SENTENCE_EXAMPLE: Example = {
    "id": "s1",
    "text": QUOTE,
    "citations": [1],
    "supported": True,
    "rejected": [],
    "rejected_texts": [],
    "layout": "statement",
    "passages": [],
    "unsupported_values": [],
    "verdict": "supported",
    "rule_verdict": "supported",
    "follows_from": [],
    "judgment": {"verdict": "supported", "reason": "It says so.", "passage": 1, "contradiction": None},
    "reasons": [],
    "edited": False,
}

CITATION_EXAMPLE: Example = {
    "number": 1,
    "text_id": TEXT_ID,
    "source_id": SOURCE_ID,
    "title": "Pool",
    "start": 120,
    "end": 196,
    "quote": QUOTE,
    "verified": True,
    "source": "S1",
    "position": "section \u201cClass: Pool\u201d, lines 12 to 14",
    "position_texts": [
        {"code": "section", "parameters": {"heading": "Class: Pool"}},
        {"code": "lines", "parameters": {"first": "12", "last": "14"}},
    ],
}

CITED_SOURCE_EXAMPLE: Example = {
    "id": "S1",
    "source_id": SOURCE_ID,
    "title": "Pool",
    "name": "docs/api/Pool.md",
    "site": "",
    "author": "",
    "published": "",
    "retrieved_at": TIMESTAMP,
    "description": "docs/api/Pool.md \u00b7 added to the library 21 November 2026",
    "citations": [1],
}

REPORT_EXAMPLE: Example = {
    "run_id": RUN_ID,
    "version": 1,
    "status": "complete",
    "reason": "answered",
    "title": "How undici reuses connections",
    "answer": SENTENCE_EXAMPLE,
    "sections": [{"heading": "Pools", "sentences": [SENTENCE_EXAMPLE]}],
    "citations": [CITATION_EXAMPLE],
    "sources": [CITED_SOURCE_EXAMPLE],
    "limitations": "Assembled from quoted sentences without a language model.",
    "author": "extractive",
    "revision": None,
    "check": {"claims": 1, "judgments": 1, "checked_by": "openai/gpt-5.2", "groups": 1, "failure": "", "unverified": 0},
    "judged_by": "The verdicts are given by rules and by openai/gpt-5.2, which judged 1 of 1 sentences.",
    "conflicts": [],
    "conflict_search": "Conflicts between sources were not looked for, because fewer than two sources are cited.",
    "edited_by": None,
    "editor": None,
    "follow_up_run_id": None,
    "note": "",
    "base_version": None,
    "latest_version": 1,
    "version_of": None,
    "created_at": TIMESTAMP,
}

RATING_EXAMPLE: Example = {
    "id": RATING_ID,
    "run_id": RUN_ID,
    "report_version": 1,
    "sentence_id": "s1",
    "scorer": "person:page",
    "version": 1,
    "value": 1,
    "correction": "",
    "created_at": TIMESTAMP,
}

RUN_FILE_EXAMPLE: Example = {
    "name": "plot.png",
    "sha256": SNAPSHOT_SHA256,
    "size_bytes": 18_204,
    "media_type": "image/png",
    "is_image": True,
}


SHARE_EXAMPLE: Example = {
    "id": SHARE_ID,
    "run_id": RUN_ID,
    "version": 1,
    "report_title": REPORT_EXAMPLE["title"],
    "label": "For the team",
    "shows_question": True,
    "state": "open",
    "created_at": TIMESTAMP,
    "expires_at": "2026-12-21T09:00:00Z",
    "revoked_at": None,
    "last_opened_at": TIMESTAMP,
    "opened_count": 3,
}

NOT_SHARED = (
    "run_id",
    "revision",
    "edited_by",
    "editor",
    "follow_up_run_id",
    "note",
    "base_version",
    "latest_version",
    "version_of",
)

SHARED_REPORT_EXAMPLE: Example = {key: value for key, value in REPORT_EXAMPLE.items() if key not in NOT_SHARED} | {
    "question": QUESTION,
    "citations": [
        {
            key: CITATION_EXAMPLE[key]
            for key in ("number", "title", "quote", "verified", "source", "position", "position_texts")
        }
        | {"erased": False}
    ],
    "sources": [
        {key: CITED_SOURCE_EXAMPLE[key] for key in ("id", "title", "site", "author", "published", "citations")}
        | {"url": "", "retrieved_at": None, "description": ""}
    ],
    "expires_at": "2026-12-21T09:00:00Z",
}

NOTIFICATION_EXAMPLE: Example = {
    "id": EVENT_ID,
    "kind": "run.done",
    "run_id": RUN_ID,
    "title": QUESTION,
    "created_at": TIMESTAMP,
    "read_at": None,
    "request": None,
}

WEBHOOK_EXAMPLE: Example = {
    "id": WEBHOOK_ID,
    "address": "https://hooks.example/offing",
    "events": ["run.waiting", "run.failed"],
    "web_ui": "https://offing.example",
    "created_at": TIMESTAMP,
}

REPORT_VERSION_EXAMPLE: Example = {
    "version": 2,
    "created_at": TIMESTAMP,
    "title": REPORT_EXAMPLE["title"],
    "author": "litellm:openai/gpt-5-mini",
    "edited_by": "web_ui",
    "editor": "person",
    "follow_up_run_id": None,
    "note": "Shorter",
    "base_version": 1,
}

EVIDENCE_EXAMPLE: Example = {
    "id": "E3",
    "source": "S1",
    "source_id": SOURCE_ID,
    "title": "Pool",
    "heading": "Class: Pool",
    "name": "docs/pool.md",
    "passage": {"text_id": TEXT_ID, "start": 120, "end": 196},
    "text": QUOTE,
}

EXAMPLES: dict[str, Example] = {
    **TRAINING_EXAMPLES,
    "ReportVersionPage": {"items": [REPORT_VERSION_EXAMPLE], "next": None},
    "EvidencePassagePage": {"items": [EVIDENCE_EXAMPLE], "next": None},
    "ReportChangesOut": {"answer": [], "sections": [], "kept_sections": 3, "title_before": ""},
    "NotificationPage": {"items": [NOTIFICATION_EXAMPLE], "next": None, "unread_count": 1},
    "WebhookIn": {"address": "https://hooks.example/offing", "events": ["run.waiting", "run.failed"]},
    "WebhookOut": WEBHOOK_EXAMPLE,
    "CreatedWebhookOut": {"webhook": WEBHOOK_EXAMPLE, "secret": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZg=="},
    "WebhookTestOut": {"status": 200, "problem": ""},
    "WebhookAttemptOut": {
        "event_id": EVENT_ID,
        "kind": "run.done",
        "run_id": RUN_ID,
        "number": 1,
        "at": TIMESTAMP,
        "status": 503,
        "problem": "The server answers with status 503.",
        "ms": 120,
        "next_attempt_at": TIMESTAMP,
    },
    "ShareIn": {"days": 30, "label": "For the team"},
    "ShareOut": SHARE_EXAMPLE,
    "SharePage": {"items": [SHARE_EXAMPLE], "next": None},
    "CreatedShareOut": {
        "share": SHARE_EXAMPLE,
        "token": "ofs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
        "path": "/shared/ofs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
    },
    "SharedReportOut": SHARED_REPORT_EXAMPLE,
    **INSTALLATION_EXAMPLES,
    "RunIn": {
        "question": QUESTION,
        "graph": "agentflow",
        "budget": BUDGET_EXAMPLE,
        "scope": {"collections": ["undici"]},
    },
    "RunOut": RUN_EXAMPLE,
    "RunDetail": RUN_EXAMPLE
    | {"live": LIVE_STATUS_EXAMPLE, "step_marks": "npnsmvnsm", "token_details": TOKEN_DETAILS_EXAMPLE},
    "RunPage": {"items": [RUN_EXAMPLE | {"match": MATCH_EXAMPLE}], "next": None, "unindexed_runs": 0},
    "RunMatchOut": MATCH_EXAMPLE,
    "RunChangeIn": {"title": "Connection pools", "tags": ["networking"], "pinned": True, "archived": None},
    "RunDeletionOut": DELETION_EXAMPLE,
    "RunCountsOut": {"waiting_for_person": 1, "active": 2, "failed": 3, "pinned": 4, "archived": 100},
    "RunChangesIn": {"changes": [{"run_id": RUN_ID, "tags": ["networking"], "archived": True}]},
    "RunChangesOut": {"items": [{"run_id": RUN_ID, "run": RUN_EXAMPLE, "problem": None}]},
    "RunDeletionsIn": {"run_ids": [RUN_ID], "later_runs": False},
    "RunDeletionsOut": {"items": [{"run_id": RUN_ID, "deletion": DELETION_EXAMPLE, "problem": None}]},
    "AnswerDraftOut": DRAFT_EXAMPLE,
    "AnswerDraftList": {"items": [DRAFT_EXAMPLE]},
    "StepOut": STEP_EXAMPLE,
    "StepDetail": STEP_EXAMPLE | {"payload": {"tool": "search_library", "args": {"query": "connection pooling"}}},
    "StepPage": {"items": [STEP_EXAMPLE], "next": None},
    "FullStepPage": {"items": [STEP_EXAMPLE | {"payload": {"tool": "search_library"}}], "next": None},
    "ForkIn": {
        "at_seq": 7,
        "budget": BUDGET_EXAMPLE,
        "engines": {"planner": EXTRACTIVE_ENGINE_EXAMPLE},
        "message": "Look at the newer release.",
    },
    "CancelIn": {"mode": "discard"},
    "RunFileList": {"items": [RUN_FILE_EXAMPLE]},
    "RunFileOut": RUN_FILE_EXAMPLE,
    "TagPage": {"items": ["networking"], "next": None},
    "ChildRunOut": run_tree.RUN_TREE_EXAMPLE["children"][0],
    "RunTreeOut": run_tree.RUN_TREE_EXAMPLE,
    "McpServerOut": {"name": "weather", "tools": ["mcp_weather_forecast"]},
    "InputRequestOut": input_requests.INPUT_REQUEST_EXAMPLE,
    "LangGraphRunOut": langgraph_runs.LANGGRAPH_RUN_EXAMPLE,
    "InputRequestList": {"items": [input_requests.INPUT_REQUEST_EXAMPLE]},
    "InputResponseIn": {"decision": "edited", "steps": ["Read what Pool does"], "comment": "Leave out the search."},
    "UserMessageIn": {"text": "Look at keep-alive time-outs as well."},
    "ProviderOut": PROVIDER_EXAMPLE,
    "ProviderTestOut": PROVIDER_TEST_EXAMPLE,
    "ProviderKindOut": PROVIDER_KIND_EXAMPLE,
    "ProviderModelListOut": PROVIDER_MODELS_EXAMPLE,
    "PresetOut": PRESET_EXAMPLE,
    "RunStatisticsOut": RUN_STATISTICS_EXAMPLE,
    "RunStatisticsList": {"items": [RUN_STATISTICS_EXAMPLE]},
    "QuestionPresetOut": QUESTION_PRESET_EXAMPLE,
    "QuestionPresetList": {"items": [QUESTION_PRESET_EXAMPLE]},
    "QuestionPresetIn": {name: QUESTION_PRESET_EXAMPLE[name] for name in ("name", "settings")},
    "QuestionPresetChangeIn": {"name": "Legal check, short"},
    **run_views.EXAMPLES,
    "ReportOut": REPORT_EXAMPLE,
    "ThreadOut": THREAD_EXAMPLE,
    "ThreadPage": {"items": [THREAD_EXAMPLE], "next": None},
    **LIBRARY_EXAMPLES,
    "GraphOut": {
        "name": "agentflow",
        "title": "AgentFlow",
        "description": "Plans, acts, checks and writes.",
        "version": "3f1c",
        "roles": ["planner", "executor", "verifier", "generator"],
        "optional_roles": ["checker"],
        "diagram": "graph TD; planner-->executor;",
        "nodes": ["__start__", "planner", "executor", "__end__"],
        "edges": [{"source": "planner", "target": "executor", "is_conditional": True}],
        "has_editable_plan": True,
        "state_view": "memory",
    },
    "EngineOut": {
        "name": "extractive",
        "available": True,
        "models": [],
        "note": "Quotes sentences. It is not a language model.",
    },
    "RatingIn": {"sentence_id": "s1", "value": 1, "correction": ""},
    "RatingOut": RATING_EXAMPLE,
    "TenantOut": {
        "name": "local",
        "training_opt_in": False,
        "max_daily_spend_usd": 5,
        "spent_today_usd": 0.12,
        "default_preset": "gpt-5-mini",
        "default_engine": "extractive",
    },
    "TenantIn": {"training_opt_in": True},
    "SessionOut": {"tenant": "local", "csrf_token": "Zy0u", "is_operator": False},
    "HealthOut": {"status": "ok", "components": {"postgres": "ok", "redis": "ok"}},
    "Problem": {
        "type": "urn:offing:problem:invalid_input",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "question: String should have at least 3 characters",
        "field": "question",
        "remedy": "Correct the value. The accepted values are in /api/v1/openapi.json.",
    },
}
