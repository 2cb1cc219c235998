"""Reports of hostile texts, written through the same storage functions as those of a worker."""

from collections.abc import Sequence
from uuid import UUID

from offing.clock import new_id
from offing.core.report import (
    Citation,
    ClaimCheck,
    ClaimJudgment,
    ClaimVerdict,
    Conflict,
    Layout,
    Report,
    ReportStatus,
    Section,
    Sentence,
)
from offing.core.run import FencingToken, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tool import SourceSpan
from offing.core.usage import UsageDelta
from offing.storage import reports, steps
from tests.api.conftest import Api

LAYOUTS = (Layout.STATEMENT, Layout.PARAGRAPH, Layout.CONTINUED, Layout.ITEM, Layout.HEADER, Layout.ROW)


def build_hostile_report(texts: Sequence[str]) -> Report:
    """Return a report with one of the texts in every place that a model or a document fills."""
    at = iter(range(10**9))

    def text() -> str:
        return texts[next(at) % len(texts)]

    citations = tuple(
        Citation(number, SourceSpan(new_id(), 0, 10), text(), new_id(), text()) for number in range(1, len(texts) // 4)
    )
    sentences = tuple(
        Sentence(
            f"s{number}",
            one,
            citations=(citations[number % len(citations)].number,) if number % 3 else (),
            rejected=(text(),) if number % 3 == 0 else (),
            unsupported_values=(text(),) if number % 5 == 0 else (),
            layout=LAYOUTS[number % len(LAYOUTS)],
            judgment=ClaimJudgment(ClaimVerdict.CONTRADICTED, text(), 1, 2) if number % 4 == 0 else None,
        )
        for number, one in enumerate(texts)
    )
    sections = tuple(Section(text(), sentences[start : start + 20]) for start in range(0, len(sentences), 20))
    check = ClaimCheck(len(sentences), len(sentences), text(), 1, text(), 0)
    return Report(
        text(), ReportStatus.PARTIAL, StopReason.TURN_LIMIT, Sentence("s0", text(), (1,)), sections, citations,
        text(), text(), check=check, conflicts=(Conflict(text(), (1, 2)),),
    )  # fmt: skip


async def write_report(api: Api, run_id: UUID, report: Report, fence: FencingToken | None = None) -> None:
    """Store a report of a run, which is claimed first if `fence` is `None`."""
    fence = fence or await api.hands.claim(run_id)
    async with api.database.transaction(api.tenant) as connection:
        draft = StepDraft(StepKind.REPORT, "Report", {})
        (step,) = await steps.append_steps(connection, fence, 30.0, [draft], UsageDelta())
        await reports.insert_report(connection, fence, step.seq, report)
