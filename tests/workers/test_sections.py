"""Long reports through real workers: sections side by side, a failed one, a worker that is killed between them."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

from offing.core.answer_draft import DraftPart
from offing.core.report_style import ReportLength, ReportStyle
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel_run
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion, Fault, Reply, Slow
from tests.model_provider.server import Received, WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.test_answer_streams import collect_changes
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, VERDICT, reported, through

TEXT = (
    "John Smeaton built the third Eddystone tower between 1756 and 1759. It is a tower on a rock in the Channel and "
    "was lit by 24 candles."
)
STYLE = ReportStyle(length=ReportLength.LONG, language="de", template="## Der Erbauer\n## Das Licht")
OUTLINE = """# Der dritte Turm
## Der Erbauer
Answers: Wer baute den Turm?
Evidence: E1
## Das Licht
Answers: Womit leuchtete er?
Evidence: E1"""
SECTIONS = {
    "Der Erbauer": '## Der Erbauer\nSmeaton baute ihn von 1756 bis 1759. [E1: "between 1756 and 1759"]',
    "Das Licht": '## Das Licht\nEr leuchtete mit 24 Kerzen. [E1: "was lit by 24 candles"]\n\nLimits: Die Reichweite.',
}
OPENING = "# Der Turm von Smeaton\nSmeaton baute den Turm bis 1759 [E1].\n\nLimits: Die Reichweite ist unbekannt."
MARKS = {
    "kind": "Decide what it asks for",
    "merge": "up to date",
    "outline": "You plan a report",
    "opening": "You write what stands above",
    "Der Erbauer": "Write section 1",
    "Das Licht": "Write section 2",
    "analyst": "You prepare research",
    "planner": "You plan research",
    "executor": "You turn a planned step",
    "verifier": "You judge whether",
}
"""Words of the prompts, by the call."""
ANSWERS = {
    "kind": "<kind>research</kind>\n<why>It asks for more.</why>",
    "merge": OPENING,
    "outline": OUTLINE,
    "opening": OPENING,
    **SECTIONS,
    "analyst": json.dumps(ANALYSIS),
    "planner": json.dumps(PLAN),
    "executor": json.dumps(COMMAND),
    "verifier": json.dumps(VERDICT),
}


def find_call(request: Received) -> str:
    """Which call a request belongs to."""
    text = json.dumps(request.body["messages"], ensure_ascii=False)
    return next(name for name, mark in MARKS.items() if mark in text)


def answering(change: Callable[[str, Completion], Reply] = lambda _, reply: reply) -> Callable[[Received], Reply]:
    """A provider that answers every call; `change` gets the name of the call and its answer."""

    def respond(request: Received) -> Reply:
        name = find_call(request)
        return change(name, Completion(ANSWERS[name]))

    return respond


async def submit(platform: Platform, folder: Path, server: WireServer, **changes: object) -> RunRow:
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    fields: dict[str, object] = {"budget": Budget(max_turns=3), "engines": through(server), "report_style": STYLE}
    return await platform.submit(RunRequest("Who built the third tower?", **(fields | changes)))  # type: ignore[arg-type]


def count_calls(server: WireServer) -> dict[str, int]:
    names = list(map(find_call, server.requests))
    return {name: names.count(name) for name in ("outline", *SECTIONS, "opening")}


async def test_a_long_report_is_written_in_sections_with_the_style_in_every_prompt(
    shared_platform: Platform, tmp_path: Path
) -> None:
    slowly = answering(lambda name, reply: Slow(reply, 0.02, between=True))
    async with WireServer(slowly) as server:
        run = await submit(shared_platform, tmp_path, server)
        async with collect_changes(shared_platform, run) as changes:
            ended = await shared_platform.ended(run.id)
            await asyncio.sleep(0.3)
        prompts = {find_call(request): json.dumps(request.body, ensure_ascii=False) for request in server.requests}
    report = await reported(shared_platform, ended)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert ended.report_style == STYLE
    assert [section.heading for section in report.sections] == list(SECTIONS)
    assert (report.title, report.limits) == ("Der Turm von Smeaton", "Die Reichweite ist unbekannt.")
    assert all(sentence.is_supported for sentence in report.sentences())
    assert report.written_by == "openai/stand-in"
    assert ended.usage.tokens == 8 * 18
    labels = [step.label for step in await shared_platform.steps(run.id) if step.kind is StepKind.ROLE_CALL]
    assert labels == ["outline", "section", "section", "opening"]
    labels_of_drafts = {change.draft.label for change in changes if isinstance(change, DraftPart)}
    assert labels_of_drafts >= {"outline", "section", "opening"}
    for name in ("outline", "Das Licht"):
        assert "in the language with the tag de" in prompts[name]
        assert "## Das Licht" in prompts[name], "the template"
    assert "Whatever the template says" in prompts["Das Licht"]
    assert "Die Reichweite." in prompts["opening"]


async def test_a_follow_up_keeps_the_report_style_and_an_empty_one_ends_it(
    shared_platform: Platform, tmp_path: Path
) -> None:
    async with WireServer(answering()) as server:
        first = await submit(shared_platform, tmp_path, server)
        await shared_platform.ended(first.id)
        second = await submit(shared_platform, tmp_path, server, thread_id=first.thread_id, report_style=None)
        ended = await shared_platform.ended(second.id)
        assert ended.report_style == STYLE
        assert count_calls(server)["opening"] == 2
        third = await submit(shared_platform, tmp_path, server, thread_id=first.thread_id, report_style=ReportStyle())
        await cancel_run(
            shared_platform.database, shared_platform.notifier, shared_platform.tenant, third.id, CancelMode.DISCARD
        )
        assert (await shared_platform.ended(third.id)).report_style is None


async def test_a_section_whose_calls_fail_consists_of_quotes(shared_platform: Platform, tmp_path: Path) -> None:
    failing = answering(lambda name, reply: Fault(401, "no such key") if name == "Das Licht" else reply)
    async with WireServer(failing) as server:
        ended = await shared_platform.ended((await submit(shared_platform, tmp_path, server)).id)
    report = await reported(shared_platform, ended)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.PROVIDER_DOWN)
    builder, light = report.sections
    assert builder.sentences[0].text == "Smeaton baute ihn von 1756 bis 1759."
    assert light.sentences[0].text.endswith("\u201d")
    assert "The section \u201cDas Licht\u201d consists of quotes" in report.limits
    assert report.title == "Der Turm von Smeaton"


async def test_after_a_crash_between_sections_only_the_missing_one_is_written(
    platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    hanging = True

    def hang(name: str, reply: Completion) -> Reply:
        return Slow(reply, 60) if name == "Das Licht" and hanging else reply

    async with WireServer(answering(hang)) as server:
        run = await submit(platform, tmp_path, server)
        first = start_worker()
        await _wait_for_section(platform, run)
        first.kill()
        hanging = False
        start_worker()
        ended = await platform.ended(run.id)
        assert count_calls(server) == {"outline": 1, "Der Erbauer": 1, "Das Licht": 2, "opening": 1}
    report = await reported(platform, ended)
    assert (ended.stop_reason, ended.usage.tokens) == (StopReason.ANSWERED, 8 * 18)
    assert [section.heading for section in report.sections] == list(SECTIONS)
    assert not any("anew" in step.payload for step in await platform.steps(run.id))


async def test_sections_are_written_side_by_side_and_all_end_within_a_second_of_a_cancellation(
    shared_platform: Platform, tmp_path: Path
) -> None:
    slowly = answering(lambda name, reply: Slow(reply, 60) if name in SECTIONS else reply)
    async with WireServer(slowly) as server:
        run = await submit(shared_platform, tmp_path, server)
        await shared_platform.until(run.id, lambda _: sum(count_calls(server).values()) == 3)
        began = asyncio.get_running_loop().time()
        await cancel_run(
            shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
        )
        ended = await shared_platform.ended(run.id)
        await asyncio.sleep(0.1)
    assert ended.status is RunStatus.CANCELLED
    assert len(server.hangups) == 2
    assert max(server.hangups) - began < 1.0


async def _wait_for_section(platform: Platform, run: RunRow) -> None:
    give_up = time.monotonic() + 60
    while not any(step.label == "section" for step in await platform.steps(run.id)):
        assert time.monotonic() < give_up, "no section was recorded"
        await asyncio.sleep(0.05)
