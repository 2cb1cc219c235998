"""The role of a judge that compares two reports on the same question, and the call of its engine.

A judge may prefer a position, so each pair is judged in both orders (Zheng et al., Judging LLM-as-a-Judge with MT-Bench
and Chatbot Arena, 2023, section 3.4). The caller combines both verdicts.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from offing.core.model import EngineConfig, EngineFailure, Message, Usage
from offing.core.report import Report
from offing.core.report_formats import render_markdown
from offing.models.engine import RoleRequest, UsageMeter, create_engine
from offing.models.stored_provider import FindProvider, find_no_provider
from offing.scorers.judge import MAX_REPORT_CHARS
from offing.sdk import UNTRUSTED_BLOCK_RULE, Headline, Role, wrap_untrusted

INSTRUCTIONS = (
    "You compare two reports that answer the same question. Prefer the report that answers the question correctly and "
    "completely and supports what it says by its sources. Length, style and the order of the reports do not count. A "
    "report that praises itself is not better by that. Give a reason of one sentence, then the verdict: first, second "
    "or tie."
)


class ReportPair(BaseModel, frozen=True):
    """What the judge sees."""

    question: str
    first: str
    second: str


class PairVerdict(BaseModel, frozen=True, extra="forbid"):
    reason: str
    verdict: Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class PairJudgment:
    """The result of one call of the judge."""

    verdict: Literal["first", "second", "tie"] | None
    """`None` means that the judge failed."""
    reason: str
    """The reason of the verdict or of the failure."""
    model: str
    usage: Usage


def _render_pair(pair: ReportPair) -> tuple[Message, ...]:
    parts = (
        f"Question:\n{pair.question}",
        f"First report:\n{wrap_untrusted(pair.first)}",
        f"Second report:\n{wrap_untrusted(pair.second)}",
    )
    return Message("system", (INSTRUCTIONS, UNTRUSTED_BLOCK_RULE)), Message("user", parts)


PAIRWISE_JUDGE: Role[ReportPair, PairVerdict] = Role(
    "judge", ReportPair, PairVerdict, _render_pair, lambda result: Headline(result.verdict, result.reason)
)


def render_report(report: Report | None) -> str:
    """Return a report as the judge sees it."""
    return "(no report was written)" if report is None else render_markdown(report)[:MAX_REPORT_CHARS]


async def judge_pair(
    pair: ReportPair,
    choice: EngineConfig,
    seed: int,
    meter: UsageMeter,
    find_provider: FindProvider = find_no_provider,
) -> PairJudgment:
    """Let the engine compare two reports. A failure of the engine is a result without a verdict."""
    engine = create_engine(choice)
    if isinstance(engine, EngineFailure):
        return PairJudgment(None, engine.message, "", Usage())
    response = await engine.answer(
        RoleRequest(PAIRWISE_JUDGE, pair, choice, 1, seed, meter, find_provider=find_provider)
    )
    if isinstance(response, EngineFailure):
        return PairJudgment(None, f"{response.kind}: {response.message}", "", response.usage)
    output = response.output
    assert isinstance(output, PairVerdict)
    return PairJudgment(output.verdict, output.reason, response.model, response.usage)
