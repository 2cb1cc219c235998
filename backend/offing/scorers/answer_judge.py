"""The scorer `answer_judge`: an engine extracts the final answer and compares it with the accepted answers.

The verdicts are those of SimpleQA (Wei et al. 2024): correct, incorrect or not attempted. As in BrowseComp (Wei et
al. 2025), the judge first extracts the exact final answer. The value is 1 for a correct answer and otherwise 0. If the
engine fails, the result is a scoring failure and never 0.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel

from offing.core.model import Message
from offing.core.report_formats import render_markdown
from offing.core.scoring import Reference, accepted_answers
from offing.models.engine import UsageMeter
from offing.scorers import scorer
from offing.scorers.judge import MAX_REPORT_CHARS, JudgeOptions, ask_judge, check_judge
from offing.scorers.scorer import ScorerResult, ScoringFailure, ScoringInput, find_missing_answers, validate_options
from offing.sdk import UNTRUSTED_BLOCK_RULE, Headline, Role, wrap_untrusted

INSTRUCTIONS = (
    "You compare the response to a question with its accepted answers. First copy the final answer that the response "
    "gives, exactly and without explanation; leave it empty if the response gives none. Then choose a verdict. "
    "correct: the final answer means the same as an accepted answer; more detail is fine if nothing contradicts it, "
    "and a number may differ by rounding. incorrect: it means something else, or the response gives several answers "
    "that cannot all be true. not_attempted: the response gives no answer, or says that it does not know. If an "
    "accepted answer says that the question cannot be answered, a response that says so is correct. Do not answer the "
    "question yourself and do not doubt the accepted answers."
)


class AnswerOptions(JudgeOptions, frozen=True, extra="forbid"):
    """Options of the answer judge."""

    show_report: bool = False
    """Whether the judge reads the whole report in addition to the short answer."""


class AnswerCase(BaseModel, frozen=True):
    """What the judge sees. An empty report is left out."""

    question: str
    accepted: tuple[str, ...]
    answer: str
    report: str = ""


class AnswerVerdict(BaseModel, frozen=True, extra="forbid"):
    extracted_answer: str
    """The final answer of the response. Empty if it gives none."""
    reason: str
    verdict: Literal["correct", "incorrect", "not_attempted"]


def _render_case(case: AnswerCase) -> tuple[Message, ...]:
    parts = [
        f"Question:\n{case.question}",
        "Accepted answers:\n" + "\n".join(f"- {one}" for one in case.accepted),
        f"Response:\n{wrap_untrusted(case.answer or '(no short answer)')}",
    ]
    if case.report:
        parts.append(f"Report of the response:\n{wrap_untrusted(case.report)}")
    return Message("system", (INSTRUCTIONS, UNTRUSTED_BLOCK_RULE)), Message("user", tuple(parts))


JUDGE: Role[AnswerCase, AnswerVerdict] = Role(
    "answer_judge",
    AnswerCase,
    AnswerVerdict,
    _render_case,
    lambda result: Headline(result.verdict, result.reason),
)


class AnswerJudge:
    name = "answer_judge"
    version = "1"
    needs_engine = True
    reads_report = True
    reads_tool_results = False

    def find_missing(self, reference: Reference | None) -> str:
        return find_missing_answers(reference)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_judge(self.name, validate_options(self.name, AnswerOptions, options))

    async def score(
        self, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
    ) -> ScorerResult | ScoringFailure:
        answer_options: AnswerOptions = validate_options(self.name, AnswerOptions, options)
        case = _build_case(scoring_input, answer_options)
        if not case.answer and not case.report:
            return ScorerResult(0.0, {"verdict": "not_attempted", "extracted_answer": "", "judge": ""})
        judgment = await ask_judge(JUDGE, case, answer_options, scoring_input, meter)
        if isinstance(judgment, ScoringFailure):
            return judgment
        verdict = judgment.output
        detail = {"verdict": verdict.verdict, "extracted_answer": verdict.extracted_answer, "judge": judgment.judge}
        return ScorerResult(float(verdict.verdict == "correct"), detail)


SCORER = AnswerJudge()


def _build_case(scoring_input: ScoringInput, options: AnswerOptions) -> AnswerCase:
    report = scoring_input.report if options.show_report else None
    return AnswerCase(
        question=scoring_input.question,
        accepted=accepted_answers(scorer.accepted_answers(scoring_input)),
        answer=scoring_input.answer,
        report=render_markdown(report)[:MAX_REPORT_CHARS] if report else "",
    )
