"""AgentFlow with a language model in every role, through real workers, litellm and the provider's wire."""

import json
from pathlib import Path
from typing import Any

from offing.core.model import EngineConfig
from offing.core.report import Report
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Fault, Reply
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform

ROLES = ("analyst", "planner", "executor", "verifier", "generator")

SECRET = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"

TEXT = "John Smeaton built the third Eddystone tower between 1756 and 1759."

ANALYSIS = {"summary": "Who built it", "sub_questions": ["Who built the third tower?"]}
PLAN = {"justification": "start", "context": "third tower", "sub_goal": "find the builder", "tool": "search_library"}
COMMAND = {"tool": "search_library", "args": {"query": "third Eddystone tower"}}
VERDICT = {"analysis": "The builder is named.", "stop": True}
SENTENCES: list[dict[str, Any]] = [
    {"text": "Smeaton built it.", "citations": [{"evidence": "E1", "quote": "John Smeaton built"}]},
    {"text": "It was red.", "citations": [{"evidence": "E1", "quote": "painted bright red"}]},
    {"text": "It fell in 1882.", "citations": [{"evidence": "E77"}]},
]
REPORT = {
    "title": "The third tower",
    "answer": "John Smeaton built it [E1].",
    "sections": [{"heading": "Builder", "sentences": SENTENCES}],
}
SUPPORTED_REPORT = {**REPORT, "sections": [{"heading": "Builder", "sentences": SENTENCES[:1]}]}
"""A report without anything that its writer would be asked to correct."""


def says(value: object) -> Completion:
    return Completion(text=json.dumps(value))


def through(server: WireServer) -> dict[str, EngineConfig]:
    options = {"output_mode": "text"}
    choice = EngineConfig(engine="litellm", model="openai/stand-in", api_base=server.url, options=options)
    return dict.fromkeys(ROLES, choice)


async def run_question(platform: Platform, folder: Path, *replies: Reply) -> RunRow:
    """A question about one document, answered by a provider that says this; once it has ended."""
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    async with WireServer(scripted(*replies)) as server:
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=through(server))
        return await platform.ended((await platform.submit(request)).id)


async def reported(platform: Platform, run: RunRow) -> Report:
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    return report


async def test_a_model_answers_every_role_and_only_what_it_read_is_cited(
    shared_platform: Platform, tmp_path: Path
) -> None:
    replies = (Fault(429), says(ANALYSIS), says(PLAN), says(COMMAND), Fault(503), says(VERDICT), says(REPORT))
    ended = await run_question(shared_platform, tmp_path, *replies)
    report = await reported(shared_platform, ended)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert ended.usage.tokens == 5 * 18
    messages = {s.text: (s.is_supported, bool(s.rejected)) for s in report.sentences()}
    assert messages == {
        "John Smeaton built it.": (True, False),
        "Smeaton built it.": (True, False),
        "It was red.": (False, True),
        "It fell in 1882.": (False, True),
    }
    assert all(c.quote in TEXT for c in report.citations)
    assert report.written_by == "openai/stand-in"


async def test_a_provider_that_stays_down_leaves_a_partial_report_of_what_was_found(
    shared_platform: Platform, tmp_path: Path
) -> None:
    replies = (says(ANALYSIS), says(PLAN), says(COMMAND), *[Fault(401, f"no such key sk-{SECRET}")] * 8)
    ended = await run_question(shared_platform, tmp_path, *replies)
    report = await reported(shared_platform, ended)
    failures = [step for step in await shared_platform.steps(ended.id) if step.kind is StepKind.FAILURE]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.PROVIDER_DOWN)
    assert (report.status, "Smeaton" in str(report.sentences())) == ("partial", True)
    assert "without a model" in report.written_by
    assert failures
    assert SECRET not in str(failures)
