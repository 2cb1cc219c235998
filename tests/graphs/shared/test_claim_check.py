"""The checker in each graph: claims and conflicts of a draft, in groups that fit, and what a failure leaves."""

from typing import Any

import pytest

from offing.core.model import FailureKind, InvalidOutput
from offing.core.report import ClaimCheck, ClaimVerdict
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import (
    ClaimPassage,
    DraftCitation,
    DraftSection,
    DraftSentence,
    EngineFailure,
    ReportDraft,
)
from offing.testing import Recording, assert_survives_worker_loss, replay_recording, simulate_run
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.hiper import graph as hiper
from offing_graphs.hiper.schemas import Action, Switch, Turn
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_graphs.memact import supo
from offing_graphs.memact.schemas import Act
from offing_graphs.research_team import graph as research_team
from offing_graphs.router import graph as router
from offing_graphs.shared.claim_check import (
    CHECKER,
    QUOTES_ONLY,
    CheckerInput,
    ListedClaim,
    PassageExcerpt,
    render_prompt,
    select_fitting,
)
from offing_graphs.shared.claim_lines import CheckerOutput, FoundConflict, JudgedClaim, parse_lines, render_lines
from offing_graphs.shared.prompt_room import Allowance
from tests.graphs.corpus import FERRY, TIDES, harbour
from tests.graphs.in_memory_context import InMemoryContext, carry_out

DOCUMENTS = {"tides.md": TIDES, "ferry.md": FERRY}
QUESTION = "How many cars does the Heron carry?"
FACT = "carries 40 cars"
SEARCH = {"query": "Heron cars"}


def a_draft() -> ReportDraft:
    fact = DraftCitation(evidence="E1", quote=FACT)
    texts = ("The Heron carries 40 cars.", "The Heron carries 40 cars free of charge.")
    sentences = tuple(DraftSentence(text=text, citations=(fact,)) for text in texts)
    return ReportDraft(title="T", sections=(DraftSection(heading="Cars", sentences=sentences),))


def judge(inputs: CheckerInput) -> CheckerOutput:
    """A checker that finds all claims supported but those about charges."""
    return CheckerOutput(
        judgments=tuple(
            JudgedClaim(
                id=c.id,
                verdict="not_found" if "charge" in c.text else "supported",
                passage=c.passages[0].id,
                why="read",
            )
            for c in inputs.claims
        )
    )


AGENTS: dict[str, tuple[Any, str, list[Any]]] = {
    "agentflow": (agentflow, "generator", [a_draft()]),
    "router": (router, "generator", [a_draft()]),
    "research_team": (research_team, "generator", [a_draft()]),
    "hiper": (
        hiper,
        "agent",
        [
            Turn(switch=Switch.SWITCH, subgoal="a", action=Action(tool="search_library", args=SEARCH)),
            Turn(subgoal="a", action=Action(tool="answer", report=a_draft())),
        ],
    ),
    "memact": (memact, "agent", [Act(tool="search_library", args=SEARCH), Act(answer=a_draft())]),
    "supo": (supo, "agent", [Act(tool="search_library", args=SEARCH), Act(answer=a_draft())]),
    "iterresearch": (
        iterresearch,
        "researcher",
        [
            {"report": "Nothing yet.", "action": {"tool": "search_library", "args": SEARCH}},
            {"report": "It is known.", "answer": a_draft().model_dump()},
        ],
    ),
}


@pytest.mark.parametrize("name", list(AGENTS))
async def test_every_graph_has_its_claims_judged_once_and_survives_a_crash_at_each_moment(name: str) -> None:
    graph, role, outputs = AGENTS[name]
    answers: dict[str, Any] = {role: outputs, "checker": judge}
    whole = await assert_survives_worker_loss(
        graph, QUESTION, documents=DOCUMENTS, answers=answers, budget=Budget(max_turns=3)
    )
    assert whole.report is not None
    assert [s.verdict for s in whole.report.sentences()] == [ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_FOUND]
    assert [step.label for step in whole.list_steps(StepKind.ROLE_CALL)].count("check") == 1
    assert whole.report.check is not None
    assert (whole.report.check.judgments, whole.report.check.claims) == (2, 2)


@pytest.mark.parametrize("name", list(AGENTS))
async def test_a_run_without_a_checker_is_as_before(name: str) -> None:
    graph, role, outputs = AGENTS[name]
    run = await simulate_run(graph, QUESTION, documents=DOCUMENTS, answers={role: outputs}, budget=Budget(max_turns=3))
    assert run.report is not None
    assert run.report.check is None
    assert [step.label for step in run.list_steps(StepKind.ROLE_CALL)].count("check") == 0
    assert "check" not in run.list_steps(StepKind.REPORT)[0].payload


async def test_a_checked_run_is_replayed() -> None:
    run = await simulate_run(
        agentflow, QUESTION, documents=DOCUMENTS, answers={"generator": [a_draft()], "checker": judge}
    )
    assert run.report is not None
    replayed = await replay_recording(agentflow, Recording(QUESTION, run.steps, reason=run.report.stop_reason))
    assert replayed.report is not None
    assert [s.verdict for s in replayed.report.sentences()] == [s.verdict for s in run.report.sentences()]


def checked_run(checker: Any, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), QUESTION, engines={"generator": lambda _: a_draft(), "checker": checker}, **more)


async def test_a_checker_that_fails_leaves_the_verdicts_of_the_rules_with_the_reason() -> None:
    failure = EngineFailure(FailureKind.OVERLOADED, "The provider does not answer.")

    def fail(_inputs: CheckerInput) -> EngineFailure:
        return failure

    ctx = checked_run(fail)
    state = await carry_out(ctx, agentflow)
    assert state["stop"] == StopReason.ANSWERED
    assert [s.verdict for s in ctx.report.sentences()] == [ClaimVerdict.SUPPORTED, ClaimVerdict.SUPPORTED]
    assert ctx.report.check == ClaimCheck(2, 0, "stand-in", failure="The provider does not answer.")


async def test_claims_that_the_checker_leaves_out_are_asked_for_once_more() -> None:
    questions: list[list[str]] = []

    def forget(inputs: CheckerInput) -> CheckerOutput:
        questions.append([claim.id for claim in inputs.claims])
        return CheckerOutput(judgments=judge(inputs).judgments[:1])

    ctx = checked_run(forget)
    await carry_out(ctx, agentflow)
    assert questions == [["s1", "s2"], ["s2"]]
    assert ctx.report.check == ClaimCheck(2, 2, "stand-in", groups=2)


async def test_a_checker_that_judges_nothing_is_asked_twice_and_no_more() -> None:

    def judge_another(_inputs: CheckerInput) -> CheckerOutput:
        return CheckerOutput(judgments=(JudgedClaim(id="s77", verdict="supported"),))

    ctx = checked_run(judge_another)
    await carry_out(ctx, agentflow)
    assert [name for name, _ in ctx.role_inputs].count("checker") == 2
    assert ctx.report.check == ClaimCheck(2, 0, "stand-in", groups=2, failure="It left out 2 of the sentences.")


@pytest.mark.parametrize("reason", [StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT])
async def test_a_run_that_may_call_no_model_does_not_ask_the_checker_and_says_so(reason: StopReason) -> None:
    ctx = checked_run(judge, stops=[None] * 4 + [reason])
    await carry_out(ctx, agentflow)
    assert "checker" not in [name for name, _ in ctx.role_inputs]
    assert ctx.report.check is not None
    assert (ctx.report.check.judgments, ctx.report.check.failure) == (0, QUOTES_ONLY)


def a_claim(number: int, text: str = "words " * 100) -> ListedClaim:
    excerpt = PassageExcerpt(id=f"E{number}", title="T", start=0, text=text)
    return ListedClaim(id=f"s{number}", text="It is so.", passages=(excerpt,))


def test_claims_are_grouped_as_they_fit_and_the_first_always_is_asked_about() -> None:
    claims = [a_claim(n) for n in range(1, 9)]
    sizes = [len(select_fitting(claims, Allowance(size))) for size in (0, 800, 2_500, 100_000)]
    assert sizes[0] == sizes[1] == 1
    assert 1 < sizes[2] < 8
    assert sizes[3] == 8


async def test_a_small_window_takes_several_calls_that_fit_it() -> None:
    ctx = checked_run(judge, context_tokens=2_300, real_context_tokens=2_300)
    long = tuple(
        DraftSentence(text=f"It is read in {id}.", citations=(DraftCitation(evidence=id),))
        for id in ("E1", "E2", "E3", "E4")
    )
    ctx.engines["generator"] = lambda _: ReportDraft(title="T", sections=(DraftSection(heading="H", sentences=long),))
    await carry_out(ctx, agentflow)
    assert ctx.report.check is not None
    assert ctx.report.check.failure == ""
    assert (ctx.report.check.judgments, ctx.report.check.claims) == (3, 3)
    assert ctx.report.check.groups > 1


def test_a_passage_stands_in_an_untrusted_block_and_is_shown_once() -> None:
    same = a_claim(1, "The words of the passage."), a_claim(1, "The words of the passage.")
    text = render_prompt(CheckerInput(question=QUESTION, claims=same))[-1].text
    assert text.count("The words of the passage.") == 1
    assert "s1 (E1): It is so." in text


OUTPUT = CheckerOutput(
    judgments=(
        JudgedClaim(id="s1", verdict="supported", passage="E3", why="it names the builder"),
        JudgedClaim(id="s4", verdict="contradicted", passage="E5", why="another year", quote="took until 1764"),
        JudgedClaim(id="s7", verdict="not_found", passage="E5", why="nothing about it"),
    ),
    conflicts=(
        FoundConflict(
            first_passage="E5",
            first_quote="took until 1764",
            second_passage="E9",
            second_quote="finished in 1759",
            matter="year of completion",
        ),
    ),
)


def test_the_text_format_is_read_as_it_is_written() -> None:
    assert parse_lines(render_lines(OUTPUT, None), None) == OUTPUT


def test_common_variants_of_the_text_format_are_read() -> None:
    text = """Here is my check:
| **s1** | Supported | passage E3 | it names the builder |
- s4 | CONTRADICTED. | E5 | another year | "took until 1764"
s7 | not found | E5 | nothing about it
**Conflict** | E5 | “took until 1764” | E9 | 'finished in 1759' | year of completion"""
    assert parse_lines(text, None) == OUTPUT


@pytest.mark.parametrize(
    ("word", "verdict"),
    [("partially supported", "partly"), ("not supported", "not_found"), ("unsupported", "not_found")],
)
def test_other_words_for_a_verdict_are_read(word: str, verdict: str) -> None:
    output = parse_lines(f"s1 | {word} | E1 | why", None)
    assert isinstance(output, CheckerOutput)
    assert output.judgments[0].verdict == verdict


@pytest.mark.parametrize("text", ["", "All of it is fine.", "s1 supported", "s1 | maybe | E1 | why"])
def test_an_answer_without_a_judgment_is_asked_for_again(text: str) -> None:
    assert isinstance(parse_lines(text, None), InvalidOutput)


def test_the_checker_needs_a_model() -> None:
    assert CHECKER.extractive is None
    assert ClaimPassage("E1", "T", "", 3, "abc").end == 6
