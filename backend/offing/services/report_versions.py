"""Versions of a report that people save: edit, restore, list and compare them, and list the passages to cite.

Versions are immutable. A save names the newest version that the person has seen, so that two people cannot overwrite
each other unknowingly.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from offing.core.calculation import find_calculation
from offing.core.citation import ClaimContext
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.evidence import EvidenceIndex
from offing.core.provenance import parse_label
from offing.core.report import Evidence, Report, VersionOrigin
from offing.core.report_changes import ReportChanges
from offing.core.report_comparison import compare_reports
from offing.core.report_edit import ReportEdit, apply_edit, list_needed_spans, restore_report
from offing.core.step import Step, StepKind
from offing.core.tool import SourceSpan
from offing.core.tool_batch import order_tool_results
from offing.services.library import read_windows
from offing.services.reports import AnalyzedReport, analyze_report
from offing.services.run_labels import check_started_by_person
from offing.storage import reports, run_summaries, runs, steps
from offing.storage.pool import Connection, Database
from offing.storage.reports import LatestVersion, ReportVersionRow
from offing.storage.runs import RunRow

MAX_VERSIONS = 1_000
"""Maximum number of versions of a report."""
MAX_TOOL_RESULTS = 10_000
"""Maximum number of tool results whose passages can be cited. The latest are used, as in the run itself."""


class ChangePublisher(Protocol):
    """Tells pages that follow a run to read it again, best effort."""

    async def publish_change(self, tenant_id: UUID, run_id: UUID, /) -> None: ...


@dataclass(frozen=True, slots=True)
class NewVersion:
    """What a person says about a version that is to be saved."""

    by: str
    """Name of the person."""
    base_version: int
    """Version that was edited or is restored."""
    latest_version: int
    """The newest version that the person has seen."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """Passages that a run has read."""

    passages: Sequence[Evidence]
    next_position: int | None
    """Where the next page begins. `None` means that this is the last one."""


async def save_edit(
    database: Database,
    publisher: ChangePublisher,
    tenant_id: UUID,
    run_id: UUID,
    edit: ReportEdit,
    new: NewVersion,
) -> AnalyzedReport:
    """Check an edited report and store it as the next version.

    Raises NotFound, InvalidInput for a citation that points to nothing, and Conflict if someone has saved a version
    that the person has not seen, if the run has not ended, or if no person started it.
    """
    async with database.transaction(tenant_id) as connection:
        run = await _get_editable_run(connection, run_id)
        base = await _get_report(connection, run_id, new.base_version)
        results = await steps.list_last_steps(connection, run_id, StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
    texts = await _read_texts(database, tenant_id, list_needed_spans(base, edit))

    def apply() -> Report:
        index = build_evidence_index(results)
        context = ClaimContext(run.question, index.calculations)
        by = VersionOrigin(new.by, new.base_version, new.note)
        return apply_edit(base, edit, tuple(index.as_dict().values()), lambda span: texts.get(span, ""), context, by)

    return await _store(database, publisher, tenant_id, run_id, await asyncio.to_thread(apply), new)


async def restore_version(
    database: Database, publisher: ChangePublisher, tenant_id: UUID, run_id: UUID, new: NewVersion
) -> AnalyzedReport:
    """Store an earlier version again as the next one. Raises NotFound and Conflict, as `save_edit`."""
    async with database.transaction(tenant_id) as connection:
        await _get_editable_run(connection, run_id)
        base = await _get_report(connection, run_id, new.base_version)
    if new.base_version == new.latest_version:
        raise InvalidInput("version", "it is the newest version", "Restore an earlier one.")
    restored = restore_report(base, VersionOrigin(new.by, new.base_version, new.note))
    return await _store(database, publisher, tenant_id, run_id, restored, new)


async def list_versions(
    database: Database, tenant_id: UUID, run_id: UUID, before: int | None, limit: int
) -> list[ReportVersionRow]:
    """Return the versions of a report, newest first. Raises NotFound if there is no such run."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        return await reports.list_versions(connection, run_id, before, limit)


async def compare_versions(
    database: Database, tenant_id: UUID, run_id: UUID, old_version: int, new_version: int
) -> ReportChanges:
    """Return the differences of one version from another one. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        old = await _get_report(connection, run_id, old_version)
        new = await _get_report(connection, run_id, new_version)
    return await asyncio.to_thread(compare_reports, old, new)


async def list_evidence(
    database: Database, tenant_id: UUID, run_id: UUID, words: str, position: int, limit: int
) -> EvidencePage:
    """Return passages that a run has read and whose texts are still stored, in the order of retrieval.

    Only those that contain all of `words`, in upper or lower case; empty means all. Raises NotFound if there is no such
    run.
    """
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        results = await steps.list_last_steps(connection, run_id, StepKind.TOOL_RESULT, MAX_TOOL_RESULTS)
    matches = await asyncio.to_thread(_find_passages, results, words)
    page = matches[position : position + limit]
    texts = await _read_texts(database, tenant_id, [one.span for one in page])
    is_last = position + limit >= len(matches)
    stored = [one for one in page if texts.get(one.span) == one.text]
    return EvidencePage(stored, None if is_last else position + limit)


def build_evidence_index(tool_results: Sequence[Step]) -> EvidenceIndex:
    """Return the evidence of an ended run, with the ids that the run used."""
    index = EvidenceIndex()
    for step in order_tool_results(tool_results):
        index.add(step.payload["content"], parse_label(step.payload), step.seq)
        if (result := find_calculation(step.payload)) is not None:
            index.add_calculation(result, step.seq)
    return index


def _find_passages(tool_results: Sequence[Step], words: str) -> list[Evidence]:
    query_words = words.casefold().split()
    passages = build_evidence_index(tool_results).as_dict().values()
    return [one for one in passages if all(word in _list_words(one) for word in query_words)]


def _list_words(passage: Evidence) -> str:
    return f"{passage.title} {passage.heading} {passage.name} {passage.text}".casefold()


async def _get_editable_run(connection: Connection, run_id: UUID) -> RunRow:
    run = await runs.get_run(connection, run_id)
    await check_started_by_person(connection, run, "edited")
    if not run.is_terminal:
        raise Conflict(f"Run {run.id} has not ended ({run.status}).", "Edit its report when it has ended.")
    if (version := await reports.find_follow_up_version(connection, run_id)) is not None:
        raise Conflict(
            f"The report of run {run.id} is version {version.version} of the report of run {version.run_id}.",
            f"Edit the newest version of the report of run {version.run_id}.",
        )
    return run


async def _get_report(connection: Connection, run_id: UUID, version: int) -> Report:
    report = await reports.find_report(connection, run_id, version)
    if report is None:
        raise NotFound("report", f"{version} of run {run_id}")
    return report


async def _read_texts(database: Database, tenant_id: UUID, spans: Sequence[SourceSpan]) -> Mapping[SourceSpan, str]:
    stored = await read_windows(database, tenant_id, spans) if spans else ()
    return {span: text or "" for span, text in zip(spans, stored, strict=True)}


async def _store(
    database: Database,
    publisher: ChangePublisher,
    tenant_id: UUID,
    run_id: UUID,
    report: Report,
    new: NewVersion,
) -> AnalyzedReport:
    """Store the next version, unless there is one that the person has not seen."""
    async with database.transaction(tenant_id) as connection:
        await runs.lock_run(connection, run_id)
        latest = await reports.find_latest_version(connection, run_id)
        _check_latest(latest, new)
        version = new.latest_version + 1
        await reports.insert_edit(connection, run_id, version, new.base_version, report)
        stored = await reports.get_verified_report(connection, run_id, version)
    await publisher.publish_change(tenant_id, run_id)
    return await analyze_report(stored)


def _check_latest(latest: LatestVersion | None, new: NewVersion) -> None:
    if latest is None or latest.number != new.latest_version:
        number = latest.number if latest else 0
        who = f" by {latest.edited_by}" if latest and latest.edited_by else ""
        raise Conflict(
            f"Version {number} of the report was saved{who} after you had read version {new.latest_version}.",
            f"Compare both. To save yours on top of it, send latest_version {number}.",
        )
    if latest.number >= MAX_VERSIONS:
        raise Conflict(f"The report has {MAX_VERSIONS} versions, the maximum.", "Ask for an edit as a follow-up.")
