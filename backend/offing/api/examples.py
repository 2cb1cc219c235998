"""One example of each shape on the wire, all of the same run, for the OpenAPI document. A test checks them."""

from typing import Any

from offing.api import families, jobs, learning, questions, standing, training

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
    "waiting_since": None,
    "error": None,
    "engines": {"planner": EXTRACTIVE},
    "scope": {"collections": ["papers"], "sources": [], "web": True, "code": False, "mcp": []},
    "budget": BUDGET,
    "spent": {"turns": 2, "tokens": 0, "usd": 0, "seconds": 1.4},
    "deadline": None,
    "last_seq": 9,
    "created_at": AT,
    "started_at": AT,
    "ended_at": None,
    "title": None,
    "questions": 0,
    "forked_from": None,
    "forked_at": None,
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

FILE: Example = {
    "name": "plot.png",
    "sha256": SNAPSHOT,
    "bytes": 18_204,
    "kind": "image/png",
    "picture": True,
}

TASK = "01980000-0000-7000-8000-00000000000f"
BATCH = "01980000-0000-7000-8000-000000000010"
GROUP = "01980000-0000-7000-8000-000000000011"
POLICY = "01980000-0000-7000-8000-000000000012"

TASK_OUT: Example = {
    "id": TASK,
    "dataset": "capitals",
    "split": "train",
    "name": "capitals/7",
    "question": "What is the capital of Australia?",
    "scope": {"collections": ["atlas"]},
    "difficulty": 0.2,
    "tags": ["1 hop"],
    "created_at": AT,
}

SCORER: Example = {"name": "exact_match", "weight": 1, "options": {}}

BATCH_OUT: Example = {
    "id": BATCH,
    "name": "first",
    "graph": "agentflow",
    "group_size": 8,
    "seed": 0,
    "tags": ["pilot"],
    "scorers": [SCORER],
    "progress": {
        "groups": 200,
        "made": 200,
        "open": 120,
        "complete": 79,
        "short": 1,
        "rollouts": 1603,
        "waiting": 900,
        "running": 60,
        "unsettled": 2,
        "settled": 641,
        "failed": 3,
        "mean_reward": 0.41,
    },
    "created_at": AT,
    "cancelled_at": None,
}

GROUP_OUT: Example = {
    "id": GROUP,
    "batch_id": BATCH,
    "task_id": TASK,
    "question": "What is the capital of Australia?",
    "graph": "agentflow",
    "graph_version": "3f1c",
    "engines": {"planner": EXTRACTIVE | {"engine": "policy", "model": "planner@3"}},
    "policies": {"planner": POLICY},
    "scorers": [SCORER | {"version": "1"}],
    "size": 8,
    "seed": 0,
    "attempts": 3,
    "tags": ["pilot"],
    "state": "complete",
    "created_at": AT,
    "completed_at": AT,
}

ROLLOUT: Example = {
    "run_id": RUN,
    "group_id": GROUP,
    "batch_id": BATCH,
    "task_id": TASK,
    "member": 0,
    "attempt": 1,
    "graph": "agentflow",
    "question": "What is the capital of Australia?",
    "status": "done",
    "stop_reason": "answered",
    "seed": 204467781,
    "turns": 2,
    "tokens": 310,
    "outcome": "answered",
    "reward": 1,
    "created_at": AT,
    "ended_at": AT,
    "settled_at": AT,
}

SCORE: Example = {
    "run_id": RUN,
    "scorer": "exact_match",
    "scorer_version": "1",
    "version": 1,
    "value": 1,
    "failure": "",
    "detail": {},
    "created_at": AT,
}

POLICY_OUT: Example = {
    "id": POLICY,
    "name": "planner",
    "version": 3,
    "parent_id": None,
    "kind": "full",
    "base_model": "",
    "uri": "/srv/policies/planner@3",
    "sha256": SNAPSHOT,
    "tokenizer_sha256": SNAPSHOT,
    "template_sha256": SNAPSHOT,
    "state": "candidate",
    "lineage": {},
    "evaluation": {},
    "created_at": AT,
    "canary_share": None,
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
    "ForkIn": {"at": 7, "budget": BUDGET, "engines": {"planner": EXTRACTIVE}, "message": "Look at the newer release."},
    "CancelIn": {"mode": "write"},
    "FileList": {"items": [FILE]},
    "FileOut": FILE,
    "ChildOut": families.EXAMPLE["children"][0],
    "FamilyOut": families.EXAMPLE,
    "McpServerOut": {"name": "weather", "tools": ["mcp_weather_forecast"]},
    "QuestionOut": questions.EXAMPLE,
    "QuestionList": {"items": [questions.EXAMPLE]},
    "AnswerIn": {"verdict": "edited", "steps": ["Read what Pool does"], "comment": "Leave the search out."},
    "MessageIn": {"text": "Look at keep-alive time-outs as well."},
    "TasksIn": {"dataset": "capitals", "tasks": [{"question": TASK_OUT["question"], "answers": ["Canberra"]}]},
    "TasksOut": {"dataset": "capitals", "ids": [TASK], "new": 1},
    "TaskOut": TASK_OUT,
    "TaskPage": {"items": [TASK_OUT], "next": None},
    "BatchIn": {
        "graph": "agentflow",
        "tasks": {"dataset": "capitals"},
        "group_size": 8,
        "policies": {"planner": "planner@3"},
        "scorers": [SCORER],
        "budget": {"turns": 3},
    },
    "BatchOut": BATCH_OUT,
    "BatchPage": {"items": [BATCH_OUT], "next": None},
    "GroupDetail": GROUP_OUT | {"rollouts": [ROLLOUT], "scores": [SCORE]},
    "GroupPage": {"items": [GROUP_OUT], "next": None},
    "RolloutDetail": ROLLOUT | {"scores": [SCORE]},
    "RolloutPage": {"items": [ROLLOUT], "next": None},
    "PolicyOut": POLICY_OUT,
    "PolicyPage": {"items": [POLICY_OUT], "next": None},
    "PolicyStateIn": {"state": "active"},
    "EvaluationOut": standing.EVALUATION,
    "EvaluationPage": {"items": [standing.EVALUATION], "next": None},
    "PromoteIn": {"force": False},
    "PromotionOut": {"policy": POLICY_OUT | {"state": "active"}, "verdict": standing.VERDICT},
    "CanaryIn": {"share": 0.1},
    "RollbackOut": {"said": "planner@2 is active again, in place of planner@3"},
    "TrajectoryOut": training.EXAMPLE,
    "LearnIn": {"engine": {"engine": "litellm", "model": "openai/gpt-5-mini"}, "usd": 0.5},
    "OutlookOut": learning.OUTLOOK,
    "LibraryText": learning.TEXT,
    "JobOut": {name: value for name, value in jobs.EXAMPLE.items() if name != "ledger"},
    "JobDetail": jobs.EXAMPLE,
    "JobPage": {"items": [], "next": None},
    "MetricList": jobs.METRICS,
    "EventList": jobs.EVENTS,
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
