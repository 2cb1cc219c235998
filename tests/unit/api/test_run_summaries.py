"""Runs in lists are serialized without validation, so all of their fields must be there."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter

from offing.api.schemas.runs import RunOut, UsageOut
from offing.api.serializers import serialize_run_summary
from offing.storage.run_summaries import RunSummary
from offing.storage.runs import run_from_row

NOW = datetime(2026, 11, 1, tzinfo=UTC)

CONFIG: dict[str, Any] = {"engine": "litellm", "model": "openai/model", "options": {}}


def a_summary() -> RunSummary:
    request: tuple[Any, ...] = (
        "graph",
        "version",
        "a question",
        {"planner": CONFIG, "verifier": dict(CONFIG)},
        {},
        "",
        {"max_turns": 12},
        {},
        1,
        "done",
    )
    progress = ("answered", None, None, 1, None, False, None, 3, 1000, Decimal("0.1"), 1.5)
    times = (6, NOW, NOW, NOW, None, "interactive", "sync", None)
    run = run_from_row((uuid4(), uuid4(), *request, *progress, *times, None, None, None, None, None, [], ""))
    return RunSummary(run, title="A title", lease_until=None)


def test_a_run_in_a_list_has_all_fields_of_its_schema_with_their_types() -> None:
    run = serialize_run_summary(a_summary())
    assert run.model_fields_set == set(RunOut.model_fields)
    assert run.usage.model_fields_set == set(UsageOut.model_fields)
    assert TypeAdapter(RunOut).validate_json(run.model_dump_json()) == run


def test_runs_of_a_list_share_equal_engine_configs() -> None:
    first, second = a_summary().run.engines, a_summary().run.engines
    assert first["planner"] is second["verifier"]
