"""Scorers give a value, or say why not; what they lack and what they cannot be told is known beforehand."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import Usage
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import StopReason
from offing.core.scoring import Reference, ReferenceEvidence
from offing.core.tool import SourceSpan
from offing.core.trajectory import Outcome
from offing.scorers import SCORERS, ScorerResult, ScoringFailure, ScoringInput

RIVERS = Citation(1, SourceSpan(UUID(int=1), 0, 20), "Rivers carry salt.", UUID(int=2), "Salt")


class Purse:
    """A meter with so much money in it."""

    def __init__(self, usd: str = "1") -> None:
        self.left, self.booked = Decimal(usd), Usage()

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        return None if max_cost_usd <= self.left else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        self.booked += usage


def a_sample(answer: str = "Paris", reference: Reference | None = None, *citations: Citation) -> ScoringInput:
    sentence = Sentence("s1", answer, tuple(c.number for c in citations))
    report = Report("T", ReportStatus.COMPLETE, "answered", sentence, (Section("", (sentence,)),), citations)
    return ScoringInput("Where?", Outcome.ANSWERED, answer, report, reference or Reference(("Paris",)))


def judge(**more: Any) -> dict[str, Any]:
    script = {"answers": [{"score": 0.25, "reason": "partly"}], "usage": {"prompt_tokens": 5, "cost_usd": "0.5"}} | more
    return {"engine": {"engine": "scripted", "options": script}}


def test_every_scorer_has_a_name_and_a_version_of_its_own() -> None:
    assert list(SCORERS) == [
        "answer_judge", "citation_precision", "citation_recall", "exact_match", "number_agreement", "numeric",
        "report_rubric", "retrieval_ndcg", "retrieval_recall", "rubric_judge", "supported_sentences", "token_f1",
    ]  # fmt: skip
    assert all(scorer.name == name and scorer.version for name, scorer in SCORERS.items())
    with pytest.raises(InvalidInput, match=r"no scorer 'taste'\. Use one of: answer_judge"):
        SCORERS.get_named("taste", "scorers")


async def test_rules_score_by_what_the_reference_says() -> None:
    numbers = a_sample("about 1,010", Reference(("1000",)))
    cited = a_sample(
        "x", Reference(("x",), (ReferenceEvidence("Rivers carry salt."), ReferenceEvidence("The sun"))), RIVERS
    )
    results = {
        "exact_match": await SCORERS["exact_match"].score(a_sample(), {}, Purse()),
        "token_f1": await SCORERS["token_f1"].score(a_sample("Paris, France"), {}, Purse()),
        "numeric": await SCORERS["numeric"].score(numbers, {"relative": "0.01"}, Purse()),
        "citation_recall": await SCORERS["citation_recall"].score(cited, {}, Purse()),
    }
    values = {name: score.value for name, score in results.items() if isinstance(score, ScorerResult)}
    assert values == {
        "exact_match": 1.0,
        "token_f1": pytest.approx(2 / 3),
        "numeric": 1.0,
        "citation_recall": 0.5,
    }


def test_what_a_task_lacks_is_said_before_anything_is_collected() -> None:
    assert all(SCORERS[n].find_missing(None) for n in ("exact_match", "token_f1", "numeric", "citation_recall"))
    assert SCORERS["rubric_judge"].find_missing(None) == ""
    assert SCORERS["numeric"].find_missing(Reference(("ten",)))
    assert not SCORERS["numeric"].find_missing(Reference(()))
    assert SCORERS["citation_recall"].find_missing(Reference(("Paris",)))
    assert not SCORERS["citation_recall"].find_missing(Reference(()))


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("exact_match", {"case": True}, "scorers.exact_match.case"),
        ("numeric", {"relative": -1}, "scorers.numeric.relative"),
        ("numeric", {"absolute": "NaN"}, "scorers.numeric.absolute"),
        ("rubric_judge", {}, "scorers.rubric_judge.engine"),
        ("rubric_judge", {"engine": "extractive"}, "scorers.rubric_judge.engine"),
        ("rubric_judge", {"engine": "oracle"}, "scorers.rubric_judge.engine"),
        (
            "rubric_judge",
            {"engine": {"engine": "litellm", "model": "openai/x", "api_base": "http://10.0.0.1/v1"}},
            "scorers.rubric_judge.engine.api_base",
        ),
    ],
)
def test_options_that_cannot_be_used_are_rejected_by_name(name: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        SCORERS[name].check_options(options)
    assert error.value.field == field


async def test_a_judge_gives_its_score_with_its_reason_and_what_it_cost_is_charged() -> None:
    purse = Purse()
    scored = await SCORERS["rubric_judge"].score(a_sample(), judge(), purse)
    assert scored == ScorerResult(0.25, {"reason": "partly", "judge": "scripted:scripted"})
    assert purse.booked.cost_usd == Decimal("0.5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (judge(fail={1: {"kind": "timeout"}}), "timeout"),
        (judge(answers=[{"score": 7, "reason": "too much"}]), "invalid_output"),
        (judge(usage={"cost_usd": "2"}), "budget_exhausted"),
    ],
)
async def test_a_judge_that_does_not_answer_gives_no_value(options: dict[str, Any], message: str) -> None:
    scored = await SCORERS["rubric_judge"].score(a_sample(), options, Purse())
    assert isinstance(scored, ScoringFailure)
    assert message in scored.message


def test_a_judge_reads_rubric_question_and_answers_and_the_report_only_when_asked_to() -> None:
    from offing.scorers.rubric_judge import JUDGE, RubricOptions, _build_case  # pyright: ignore[reportPrivateUsage]

    def render_prompt(**more: Any) -> str:
        case = _build_case(a_sample("Lyon"), RubricOptions(engine="scripted", rubric="Be kind.", **more))
        return "\n".join(message.text for message in JUDGE.render(case))

    assert all(part in render_prompt() for part in ("Be kind.", "Where?", "Lyon", "Accepted answers:\n- Paris"))
    assert "Paris" not in render_prompt(show_reference=False)
    assert "Report to be graded" not in render_prompt()
    assert "Report to be graded:\n# T" in render_prompt(show_report=True)
