"""A model's draft with problems goes back to it over the provider's wire, and the stored report holds."""

from pathlib import Path

from offing.core.report import ReportRevision
from offing.core.step import StepKind
from offing.report_files.writers import ReportFileWriter
from offing.services.graphs import open_registry
from offing.services.report_export import export_report
from offing.storage import steps
from offing_workers.replay import replay_run
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, REPORT, VERDICT, reported, run_question, says

REVISION: dict[str, object] = {
    "sentences": [
        {"id": "s3", "text": "It was built in 1756.", "citations": [{"evidence": "E1", "quote": "between 1756"}]},
        {"id": "s4", "text": "", "citations": []},
    ]
}


async def test_a_corrected_draft_is_stored_counted_exported_and_replayed(
    shared_platform: Platform, tmp_path: Path
) -> None:
    replies: tuple[object, ...] = (ANALYSIS, PLAN, COMMAND, VERDICT, REPORT, REVISION)
    ended = await run_question(shared_platform, tmp_path, *map(says, replies))
    report = await reported(shared_platform, ended)
    assert [s.text for s in report.sections[0].sentences] == ["Smeaton built it.", "It was built in 1756."]
    assert all(s.is_supported for s in report.sentences())
    assert report.revision == ReportRevision(2, 0)
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        log = await steps.list_steps_after(connection, ended.id, 0, 1_000)
    assert [s.label for s in log if s.kind is StepKind.ROLE_CALL] == ["write", "correct"]
    again = await replay_run(shared_platform.database, shared_platform.tenant, ended.id, open_registry(""))
    assert again.is_same, again.detail
    platform = shared_platform
    file = await export_report(platform.database, ReportFileWriter(), platform.tenant, ended.id, "json")
    assert b'"problems_before": 2' in file.body
    assert file.body.count(b'"verdict": "supported"') == 6, "once with the sentence and once in the table"
