"""Follow-ups through real workers: questions on a report, edits of it, and research merged into it."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from offing.core.errors import InvalidInput, NotFound
from offing.core.follow_up import FollowUpKind, KindChooser
from offing.core.model import EngineConfig, get_smallest_answer
from offing.core.report import Report, ReportDraft, VersionOrigin
from offing.core.report_changes import ChangeKind
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.services.erasure import erase_source
from offing.services.follow_ups import FollowUpRequest
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.recordings import get_recording
from offing.services.runs import RunRequest
from offing.storage import reports
from offing.storage.reports import FollowUpVersion
from offing.storage.runs import RunRow
from offing.testing.recording import Recording, recording_to_json, replay_recording
from offing_graphs.shared.text_reports import render_report
from offing_workers.replay import replay_run
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.model_provider.replies import Completion, Fault, Reply
from tests.model_provider.server import Received, WireServer
from tests.workers.conftest import Platform, SharedServers
from tests.workers.processes import ALL_GRAPHS

QUESTION = "How does a Fresnel lens save light, and how is the flash made?"
GRAPHS = ("agentflow", "router", "iterresearch", "memact", "supo", "hiper", "research_team")


@pytest.fixture
async def library(shared_platform: Platform) -> Platform:
    uploads = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(shared_platform.database, shared_platform.tenant, uploads)
    return shared_platform


async def ended(platform: Platform, request: RunRequest) -> tuple[RunRow, Report]:
    run = await platform.ended((await platform.submit(request)).id)
    assert run.status is RunStatus.DONE, run.error
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    return run, report


async def first_report(platform: Platform, graph: str = "agentflow", **more: Any) -> tuple[RunRow, Report]:
    run, report = await ended(platform, RunRequest(QUESTION, graph, budget=Budget(max_turns=8), **more))
    assert report.follow_up is None
    assert report.citations
    return run, report


async def follow(
    platform: Platform, earlier: RunRow, text: str, kind: FollowUpKind | None = None, **more: Any
) -> tuple[RunRow, Report]:
    """Submit a follow-up in the thread. A kind of `None` leaves the decision to the run."""
    request = RunRequest(text, earlier.graph, thread_id=earlier.thread_id, budget=Budget(max_turns=8), **more)
    return await ended(platform, replace(request, follow_up=kind and FollowUpRequest(kind)))


def quoted(report: Report) -> set[tuple[UUID, str]]:
    return {(c.span.text_id, c.quote) for c in report.citations}


def tools_of(steps: list[Any]) -> list[str]:
    return [s.payload["tool"] for s in steps if s.kind is StepKind.TOOL_RESULT]


async def check_replay(platform: Platform, run: RunRow) -> None:
    graphs = open_registry(ALL_GRAPHS)
    again = await replay_run(platform.database, platform.tenant, run.id, graphs)
    assert again.is_same, again.detail
    row, steps, earlier = await get_recording(platform.database, platform.tenant, run.id)
    windows = {role: engine.context_tokens for role, engine in row.engines.items() if engine.context_tokens}
    recording = Recording(
        row.question,
        steps,
        row.budget,
        earlier,
        row.seed,
        row.stop_reason or "",
        windows,
        row.report_style,
        follow_up=row.follow_up,
        answer_tokens={role: size for role, engine in row.engines.items() if (size := get_smallest_answer(engine))},
    )
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    await replay_recording(graphs[row.graph], stored)


# Without a model ------------------------------------------------------------------------------------------------------


async def test_a_question_that_the_evidence_covers_is_answered_from_it_without_research(library: Platform) -> None:
    first, report = await first_report(library)
    run, answer = await follow(library, first, "What do the rings of a Fresnel lens gather?")
    assert answer.follow_up is not None
    assert (answer.follow_up.kind, answer.follow_up.chosen_by) == (FollowUpKind.QUESTION, KindChooser.RULES)
    assert answer.follow_up.changes is None
    assert tools_of(await library.steps(run.id)) == ["earlier_report"]
    assert answer.answer
    assert answer.answer.is_supported
    assert "gather the light" in answer.answer.text
    assert {text for text, _ in quoted(answer)} <= {text for text, _ in quoted(report)}
    await check_replay(library, run)


async def test_an_edit_without_a_model_shortens_and_removes_sections_and_keeps_the_citations(library: Platform) -> None:
    first, report = await first_report(library)
    run, shorter = await follow(library, first, "Please shorten the report.")
    assert shorter.follow_up is not None
    assert (shorter.follow_up.kind, shorter.follow_up.chosen_by) == (FollowUpKind.EDIT, KindChooser.RULES)
    assert quoted(shorter) <= quoted(report)
    assert 0 < len(shorter.sentences()) < len(report.sentences())
    assert all(s.is_supported for section in shorter.sections for s in section.sentences)
    changes = shorter.follow_up.changes
    assert changes is not None
    removed = [s.text for section in changes.sections for s in section.sentences if s.kind is ChangeKind.REMOVED]
    assert sorted(removed) == sorted({s.text for s in report.sentences()} - {s.text for s in shorter.sentences()})
    await check_version(library, first, 2, run, shorter)
    second, without = await follow(library, first, f"Drop the section {report.sections[0].heading}")
    assert without.follow_up is not None
    assert [s.heading for s in without.sections] == [s.heading for s in shorter.sections[1:]]
    assert (without.follow_up.run_id, without.follow_up.version) == (first.id, 2)
    await check_version(library, first, 3, second, without)
    await check_replay(library, run)
    await check_replay(library, first)


async def test_an_edit_that_waits_for_the_run_that_it_edits_holds_no_lock_that_a_deletion_needs(
    library: Platform, shared_servers: SharedServers
) -> None:
    first, _ = await first_report(library)
    with psycopg.connect(shared_servers.owner_url) as deletion:
        # Weaker than the lock of a deletion, so that the follow-up can be submitted while it is held.
        deletion.execute("select from app.run where id = %s for no key update", (first.id,))
        request = RunRequest("Please shorten the report.", first.graph, thread_id=first.thread_id)
        run = await library.submit(replace(request, follow_up=FollowUpRequest(FollowUpKind.EDIT)))
        blocked = "select from pg_locks where not granted and pid <> pg_backend_pid()"
        for _ in range(2_000):
            if deletion.execute(blocked).fetchall():
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the edit did not wait for the run that it edits")
        deletion.execute("select from app.run where id = %s for update nowait", (run.id,))
        deletion.rollback()
    assert (await library.ended(run.id)).status is RunStatus.DONE


async def check_version(platform: Platform, first: RunRow, number: int, run: RunRow, written: Report) -> None:
    """Check that the report of an edit is a version of the report of `first`, and that the run has its own copy."""
    async with platform.database.transaction(platform.tenant) as connection:
        read = await reports.get_verified_report(connection, first.id)
        own = await reports.get_verified_report(connection, run.id)
    assert (read.version, read.latest_version, read.unverified_citations) == (number, number, frozenset())
    assert read.report.edit == VersionOrigin(written.written_by, number - 1, run.question, run.id)
    assert (read.report.title, read.report.sections) == (written.title, written.sections)
    assert own.became == FollowUpVersion(first.id, number, number)


async def test_an_edit_that_needs_a_model_leaves_the_report_unchanged_and_says_so(library: Platform) -> None:
    first, report = await first_report(library)
    _, same = await follow(library, first, "Translate it into German.")
    assert same.follow_up is not None
    assert same.follow_up.changes is not None
    assert same.follow_up.changes.is_empty
    assert "needs a language model" in same.follow_up.unchanged_because
    assert [s.text for s in same.sentences()] == [s.text for s in report.sentences()]
    assert quoted(same) == quoted(report)


async def test_new_research_is_merged_into_the_report_and_the_changes_are_listed(library: Platform) -> None:
    first, report = await first_report(library)
    horn = Upload("horns.md", b"# Horns\n\nA Tyfon horn uses compressed air and a vibrating metal diaphragm.\n")
    await ingest_uploads(library.database, library.tenant, [horn])
    run, merged = await follow(library, first, "What does a Tyfon horn use?")
    assert merged.follow_up is not None
    assert (merged.follow_up.kind, merged.follow_up.chosen_by) == (FollowUpKind.RESEARCH, KindChooser.RULES)
    assert "search_library" in tools_of(await library.steps(run.id))
    assert {s.heading for s in report.sections} <= {s.heading for s in merged.sections}
    assert {s.text for section in report.sections for s in section.sentences} <= {s.text for s in merged.sentences()}
    assert any("compressed air" in s.text for s in merged.sentences())
    changes = merged.follow_up.changes
    assert changes is not None
    assert any(section.kind is ChangeKind.ADDED for section in changes.sections)
    assert not any(section.kind is ChangeKind.REMOVED for section in changes.sections)
    assert quoted(report) <= quoted(merged)
    await check_replay(library, run)


@pytest.mark.parametrize("graph", GRAPHS)
async def test_every_included_graph_has_the_three_kinds(library: Platform, graph: str) -> None:
    first, report = await first_report(library, graph)
    _, answer = await follow(library, first, "What do the rings of the lens gather?", FollowUpKind.QUESTION)
    _, shorter = await follow(library, first, "Make it shorter", FollowUpKind.EDIT)
    last, merged = await follow(library, first, "What did keepers do in the tower?", FollowUpKind.RESEARCH)
    outcomes = [one.follow_up for one in (answer, shorter, merged)]
    assert [(o.kind.value, o.chosen_by.value) for o in outcomes if o] == [
        ("question", "person"),
        ("edit", "person"),
        ("research", "person"),
    ]
    assert answer.citations
    assert quoted(shorter) <= quoted(report)
    assert quoted(shorter) <= quoted(merged)
    assert len(merged.sentences()) > len(shorter.sentences())
    await check_replay(library, last)


async def test_an_answer_is_no_new_version_so_an_edit_after_it_is_of_the_report(library: Platform) -> None:
    first, report = await first_report(library)
    answer, _ = await follow(library, first, "What do the rings of the lens gather?", FollowUpKind.QUESTION)
    named = await library.submit(
        RunRequest("List it", "agentflow", follow_up=FollowUpRequest(FollowUpKind.QUESTION, answer.id))
    )
    await library.ended(named.id)
    run, shorter = await follow(library, first, "Make it shorter")
    assert named.follow_up is not None
    assert run.follow_up is not None
    assert named.follow_up.run_id == first.id
    assert (run.follow_up.run_id, run.follow_up.kind) == (first.id, FollowUpKind.AUTO)
    assert quoted(shorter) <= quoted(report)


async def test_deleted_documents_are_said_and_no_longer_cited(library: Platform) -> None:
    first, report = await first_report(library)
    deleted = report.citations[0]
    await erase_source(library.database, library.tenant, deleted.source_id)
    _, shorter = await follow(library, first, "Turn it into a list", FollowUpKind.EDIT)
    assert shorter.follow_up is not None
    assert len(shorter.follow_up.deleted_sources) == 1
    assert deleted.source_id not in {c.source_id for c in shorter.citations}
    uploads = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(library.database, library.tenant, uploads)


# Errors ---------------------------------------------------------------------------------------------------------------


async def test_a_thread_without_a_report_can_only_be_researched(shared_platform: Platform) -> None:
    first = await shared_platform.submit(RunRequest(QUESTION, "agentflow"))
    request = RunRequest("Shorter", "agentflow", thread_id=first.thread_id)
    for kind in (FollowUpKind.QUESTION, FollowUpKind.EDIT):
        with pytest.raises(InvalidInput, match="no report yet"):
            await shared_platform.submit(replace(request, follow_up=FollowUpRequest(kind, first.id)))
    await shared_platform.ended(first.id)


async def test_a_graph_without_follow_ups_says_which_graphs_have_them(shared_platform: Platform) -> None:
    first = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=1)))
    await shared_platform.ended(first.id)
    request = RunRequest("Shorter", "counting", thread_id=first.thread_id)
    with pytest.raises(InvalidInput, match="counting has no follow-ups of the kind edit") as error:
        await shared_platform.submit(replace(request, follow_up=FollowUpRequest(FollowUpKind.EDIT)))
    assert "agentflow" in str(error.value.args)
    run = await shared_platform.submit(replace(request, follow_up=FollowUpRequest(FollowUpKind.RESEARCH)))
    assert run.follow_up is None
    await shared_platform.ended(run.id)


async def test_a_follow_up_needs_a_run_or_a_thread_that_fit(shared_platform: Platform) -> None:
    first = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=1)))
    await shared_platform.ended(first.id)
    edit = RunRequest("Shorter", "agentflow", follow_up=FollowUpRequest(FollowUpKind.EDIT))
    with pytest.raises(InvalidInput, match="names no earlier run"):
        await shared_platform.submit(edit)
    with pytest.raises(NotFound):
        await shared_platform.submit(replace(edit, follow_up=FollowUpRequest(FollowUpKind.EDIT, UUID(int=7))))
    named = FollowUpRequest(FollowUpKind.EDIT, first.id)
    with pytest.raises(InvalidInput, match="another thread"):
        await shared_platform.submit(replace(edit, follow_up=named, thread_id=UUID(int=8)))


# With a model ---------------------------------------------------------------------------------------------------------


Answer = str | dict[str, Any]
"""A completion as text, or the output of a role."""


class Model:
    """A stand-in for a provider's model. It answers by the instructions of the prompt, and cites what it is shown."""

    def __init__(self, answers: Mapping[str, Fault | Answer | Callable[[Any], Answer]]) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def __call__(self, received: Received) -> Reply:
        text = json.dumps(received.body["messages"], ensure_ascii=False)
        for words, answer in self.answers.items():
            if words in text:
                self.calls.append(words)
                if isinstance(answer, Fault):
                    return answer
                written = answer(json.loads(text)) if callable(answer) else answer
                return Completion(text=written if isinstance(written, str) else as_text(written))
        raise AssertionError(text[:2000])


CLASSIFY, ANSWER, EDIT, MERGE = "Decide what it asks for", "You answer a question", "You edit", "up to date"


def through(server: WireServer) -> dict[str, EngineConfig]:
    return {"generator": EngineConfig(engine="litellm", model="openai/stand-in", api_base=server.url)}


def as_text(answer: dict[str, Any]) -> str:
    """Return an answer in the text format of its role."""
    if "kind" in answer:
        return f"<kind>{answer['kind']}</kind>\n<why>{answer['why']}</why>"
    return render_report(ReportDraft.model_validate(answer))


def cited(messages: list[dict[str, Any]], words: str) -> dict[str, str]:
    """Return the citation of the report in the prompt whose quote contains these words."""
    text = " ".join(str(message["content"]) for message in messages)
    for id, quote in re.findall(r"\[(E\d+): (\"(?:[^\"\\]|\\.)*\")\]", text):
        if words in json.loads(quote):
            return {"evidence": id, "quote": json.loads(quote)}
    raise AssertionError(f"{words!r} is not quoted in {text[-3000:]}")


def sentence(text: str, *citations: dict[str, str]) -> dict[str, Any]:
    return {"text": text, "citations": list(citations)}


def report_of(title: str, heading: str, *sentences: dict[str, Any], answer: str = "") -> dict[str, Any]:
    return {"title": title, "answer": answer, "sections": [{"heading": heading, "sentences": list(sentences)}]}


async def test_a_model_chooses_the_kind_and_translates_with_the_same_citations(library: Platform) -> None:
    first, report = await first_report(library)

    def translate(messages: list[dict[str, Any]]) -> dict[str, Any]:
        citation = cited(messages, "gather the light")
        return report_of(
            "Die Fresnellinse",
            "Warum sie Licht spart",
            sentence("Die Ringe sammeln das Licht.", citation),
            sentence("Sie wurde 1823 erfunden."),
            sentence("Und sie ist schwer.", {"evidence": citation["evidence"], "quote": "other words"}),
        )

    model = Model({CLASSIFY: {"kind": "edit", "why": "A translation."}, EDIT: translate})
    async with WireServer(model) as server:
        run, german = await follow(library, first, "Auf Deutsch, bitte.", engines=through(server))
    assert model.calls == [CLASSIFY, EDIT]
    assert german.follow_up is not None
    assert (german.follow_up.kind, german.follow_up.chosen_by) == (FollowUpKind.EDIT, KindChooser.MODEL)
    assert [s.text for s in german.sentences()] == ["Die Ringe sammeln das Licht."]
    assert quoted(german) <= quoted(report)
    assert german.sentences()[0].is_supported
    assert german.follow_up.changes is not None
    assert german.follow_up.changes.title_before == report.title
    note = next(s for s in await library.steps(run.id) if s.label == "follow_up")
    assert note.payload == {"kind": "edit", "chosen_by": "model", "why": "A translation."}
    await check_replay(library, run)


async def test_a_model_answers_a_question_from_the_evidence(library: Platform) -> None:
    first, report = await first_report(library)

    def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
        return report_of(
            "Rings", "", sentence("They gather light.", cited(messages, "gather the light")), answer="Light."
        )

    model = Model({ANSWER: answer})
    async with WireServer(model) as server:
        run, short = await follow(
            library, first, "What do the rings do?", FollowUpKind.QUESTION, engines=through(server)
        )
    assert model.calls == [ANSWER]
    assert tools_of(await library.steps(run.id)) == ["earlier_report"]
    assert quoted(short) <= quoted(report)
    assert (short.written_by, short.stop_reason) == ("openai/stand-in", StopReason.ANSWERED)
    await check_replay(library, run)


async def test_a_number_that_an_answer_needs_is_calculated_and_the_answer_is_written_with_the_result(
    library: Platform,
) -> None:
    first, _ = await first_report(library)

    def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
        is_calculated = "7 * 6 = 42" in str(messages)
        text = f"The rings gather the light of {42 if is_calculated else 45} lamps."
        return report_of("Lamps", "Answer", sentence(text, cited(messages, "gather the light")))

    model = Model({"You have answered": "7 * 6\nimport os", ANSWER: answer})
    async with WireServer(model) as server:
        run, short = await follow(
            library, first, "How many lamps do six rings equal?", FollowUpKind.QUESTION, engines=through(server)
        )
    assert model.calls == [ANSWER, "You have answered", ANSWER]
    assert tools_of(await library.steps(run.id)) == ["earlier_report", "calculate"]
    (only,) = short.sections[0].sentences
    assert (only.text, only.is_supported) == ("The rings gather the light of 42 lamps.", True)
    await check_replay(library, run)


async def test_nothing_is_calculated_where_the_tool_policy_forbids_it(library: Platform) -> None:
    policy = ToolPolicy(rules=(ToolRule(tool="search_library", allow_other_args=True),))
    first, _ = await first_report(library)
    model = Model(
        {
            "You have answered": "7 * 6",
            "You correct sentences": "s1: remove",
            ANSWER: lambda m: report_of("Lamps", "Answer", sentence("It is 42.", cited(m, "gather the light"))),
        }
    )
    async with WireServer(model) as server:
        _, short = await follow(
            library, first, "How many?", FollowUpKind.QUESTION, engines=through(server), tool_policy=policy
        )
    assert not any(s.is_supported for s in short.sentences())


async def test_a_model_merges_new_findings_and_keeps_what_it_does_not_mention(library: Platform) -> None:
    first, report = await first_report(library)

    def findings(messages: list[dict[str, Any]]) -> dict[str, Any]:
        text = str(messages)
        id = next(m[1] for m in re.finditer(r"(E\d+)[^E]{0,200}Keepers", text))
        quote = "Keepers trimmed the wicks"
        return report_of("Keepers", "Keepers", sentence("Keepers trimmed wicks.", {"evidence": id, "quote": quote}))

    def merge(messages: list[dict[str, Any]]) -> dict[str, Any]:
        merged = report_of("Lights and keepers", "Keepers", sentence("keep N1"), answer="Both.")
        return merged | {"sections": [{"heading": "", "sentences": [sentence("drop P1")]}, *merged["sections"]]}

    model = Model({CLASSIFY: {"kind": "research", "why": "New."}, MERGE: merge, "You write a report": findings})
    async with WireServer(model) as server:
        run, merged = await follow(library, first, "What did keepers trim?", engines=through(server))
    assert model.calls[0] == CLASSIFY
    assert MERGE in model.calls
    assert merged.follow_up is not None
    changes = merged.follow_up.changes
    assert changes is not None
    kinds = {section.heading: section.kind for section in changes.sections}
    assert kinds == {"Keepers": ChangeKind.ADDED, report.sections[0].heading: ChangeKind.REMOVED}
    assert changes.kept_sections == len(report.sections) - 1
    assert any(s.text == "Keepers trimmed wicks." and s.is_supported for s in merged.sentences())
    await check_replay(library, run)


async def test_a_report_that_a_model_merged_with_quotes_goes_back_to_it_if_a_citation_does_not_carry_its_sentence(
    library: Platform,
) -> None:
    first, _ = await first_report(library)
    passages: list[dict[str, str]] = []

    def merge(messages: list[dict[str, Any]]) -> dict[str, Any]:
        passages.append(cited(messages, "gather the light"))
        whales = f"Whales of the sea are counted in the winter. [{passages[0]['evidence']}]"
        return report_of("Lights", "Keepers", sentence("keep N1"), answer=whales)

    def correct(_: list[dict[str, Any]]) -> str:
        return f's1: The rings gather the light. [{passages[0]["evidence"]}: "{passages[0]["quote"]}"]'

    answers = {MERGE: merge, "You correct sentences": correct, "You write a report": ""}
    model = Model({CLASSIFY: {"kind": "research", "why": "New."}, **answers})
    async with WireServer(model) as server:
        run, merged = await follow(library, first, "What did keepers trim?", engines=through(server))
    assert merged.stop_reason == StopReason.INVALID_OUTPUT, "the findings are quotes, because the writer failed"
    assert merged.revision is not None
    assert (merged.revision.problems_before, merged.revision.problems_after) == (1, 0)
    assert merged.answer is not None
    assert merged.answer.is_supported
    await check_replay(library, run)


async def test_a_provider_that_is_down_leaves_the_report_unchanged(library: Platform) -> None:
    first, report = await first_report(library)
    model = Model({EDIT: Fault(401, "no such key")})
    async with WireServer(model) as server:
        _, same = await follow(library, first, "Shorter", FollowUpKind.EDIT, engines=through(server))
    assert same.follow_up is not None
    assert same.follow_up.unchanged_because
    assert (same.stop_reason, quoted(same)) == (StopReason.PROVIDER_DOWN, quoted(report))


# With a checker -------------------------------------------------------------------------------------------------------


def judge_all(received: Received) -> Reply:
    """A checker that finds every claim of its prompt supported by the first passage that it cites."""
    text = "\n".join(str(message["content"]) for message in received.body["messages"])
    claims = re.findall(r"^(s\d+) \((E\d+)[^)]*\):", text, re.MULTILINE)
    return Completion(text="\n".join(f"{id} | supported | {passage} | it says so" for id, passage in claims))


async def test_edits_answers_and_merged_reports_are_checked_and_keep_the_checker(library: Platform) -> None:
    async with WireServer(judge_all) as server:
        checker = EngineConfig(engine="litellm", model="openai/checking-model", api_base=server.url)
        first, report = await first_report(library, engines={"checker": checker})
        runs = [
            await follow(library, first, "What do the rings of the lens gather?", FollowUpKind.QUESTION),
            await follow(library, first, "Make it shorter", FollowUpKind.EDIT),
            await follow(library, first, "What did keepers do in the tower?", FollowUpKind.RESEARCH),
            await follow(library, first, "Translate it into German", FollowUpKind.EDIT),
        ]
    for one in (report, *(answer for _, answer in runs)):
        assert one.check is not None
        assert one.check.checked_by == "openai/checking-model"
        assert one.check.claims == one.check.judgments > 0
    unchanged = runs[-1][1].follow_up
    assert unchanged is not None
    assert unchanged.unchanged_because
    for run, _ in runs:
        await check_replay(library, run)
