"""A draft with problems goes back to its writer once; what still fails is marked; both are counted."""

from collections.abc import Callable
from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import DraftCitation, DraftSection, DraftSentence, EngineFailure, Layout, ReportDraft, ReportRevision
from offing.testing import Recording, assert_survives_worker_loss, replay_recording, simulate_run
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.hiper import graph as hiper
from offing_graphs.hiper.schemas import Action, Switch, Turn
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_graphs.memact.schemas import Act
from offing_graphs.router import graph as router
from offing_graphs.shared.revision import (
    DraftRevision,
    RevisedSentence,
    RevisionInput,
    apply_revision,
    parse_text_revision,
    render_revision_prompt,
    render_text_revision,
)
from tests.graphs.corpus import FERRY, TIDES, harbour
from tests.graphs.in_memory_context import InMemoryContext, carry_out

DOCUMENTS = {"tides.md": TIDES, "ferry.md": FERRY}
QUESTION = "How many cars does the Heron carry?"
FACT = "carries 40 cars"


def a_draft(text: str = "The Heron carries 55 cars.", quote: str = FACT) -> ReportDraft:
    citation = DraftCitation(evidence="E1", quote=quote)
    sentences = (
        DraftSentence(text=text, citations=(citation,)),
        DraftSentence(text="It is invented.", citations=(DraftCitation(evidence="E99", quote="words"),)),
    )
    return ReportDraft(title="T", sections=(DraftSection(heading="Cars", sentences=sentences),))


CORRECTED = DraftRevision(
    sentences=(
        RevisedSentence(
            id="s1", text="The Heron carries 40 cars.", citations=(DraftCitation(evidence="E1", quote=FACT),)
        ),
        RevisedSentence(id="s2", text=""),
    )
)


def answering(written: Any, corrected: Any = CORRECTED) -> Callable[[Any], Any]:
    """An engine that writes a draft, and corrects it."""
    return lambda inputs: corrected if isinstance(inputs, RevisionInput) else written


def revised_run(engine: Callable[[Any], Any], **more: Any) -> InMemoryContext:
    options: dict[str, Any] = {"engines": {"generator": engine}, "revisers": frozenset({"generator"})} | more
    return InMemoryContext(harbour(), QUESTION, **options)


async def test_an_invented_number_goes_back_to_the_writer_with_what_the_text_says() -> None:
    ctx = revised_run(answering(a_draft()))
    await carry_out(ctx, agentflow)
    assert [s.text for s in ctx.report.sentences()] == ["The Heron carries 40 cars."]
    assert all(s.is_supported for s in ctx.report.sentences())
    assert ctx.report.revision == ReportRevision(2, 0)
    (inputs,) = (one for _, one in ctx.role_inputs if isinstance(one, RevisionInput))
    messages = [problem.message for sentence in inputs.sentences for problem in sentence.problems]
    assert messages == [
        "55 is in none of the words quoted, and no calculation of this run gives it.",
        "E99 was not retrieved in this run.",
    ]


async def test_what_still_fails_is_marked_and_counted() -> None:
    half = DraftRevision(sentences=CORRECTED.sentences[1:])
    ctx = revised_run(answering(a_draft(), half))
    await carry_out(ctx, agentflow)
    assert [s.unsupported_values for s in ctx.report.sentences()] == [("55",)]
    assert ctx.report.revision == ReportRevision(2, 1)


async def test_corrections_that_correct_nothing_are_not_used() -> None:
    worse = DraftRevision(sentences=(RevisedSentence(id="s1", text="The Heron carries 77 cars.", citations=()),))
    ctx = revised_run(answering(a_draft(), worse))
    await carry_out(ctx, agentflow)
    assert ctx.report.sentences()[0].text == "The Heron carries 55 cars."
    assert ctx.report.revision is not None
    assert ctx.report.revision.skipped == "The corrected sentences had as many problems."


async def test_a_draft_without_problems_and_an_engine_without_a_model_are_not_asked() -> None:
    sound = a_draft("The Heron carries 40 cars.")
    sound = sound.model_copy(
        update={"sections": (DraftSection(heading="H", sentences=sound.sections[0].sentences[:1]),)}
    )
    for ctx in (revised_run(answering(sound)), revised_run(answering(a_draft()), revisers=frozenset())):
        await carry_out(ctx, agentflow)
        assert ctx.report.revision is None
        assert not any(isinstance(one, RevisionInput) for _, one in ctx.role_inputs)


async def test_without_budget_the_draft_is_marked_and_the_reason_recorded() -> None:
    failure = EngineFailure(FailureKind.BUDGET_EXHAUSTED, "No budget left for this call.", stop_reason="token_limit")
    ctx = revised_run(answering(a_draft(), failure))
    state = await carry_out(ctx, agentflow)
    assert state["stop"] == StopReason.ANSWERED
    assert ctx.report.revision == ReportRevision(2, 2, "No budget left for this call.")
    assert not ctx.report.sentences()[0].is_supported


SEARCH = {"query": "Heron cars"}
AGENTS: dict[str, tuple[Any, str, list[Any]]] = {
    "agentflow": (agentflow, "generator", [a_draft()]),
    "router": (router, "generator", [a_draft()]),
    "hiper": (
        hiper,
        "agent",
        [
            Turn(switch=Switch.SWITCH, subgoal="a", action=Action(tool="search_library", args=SEARCH)),
            Turn(subgoal="a", action=Action(tool="answer", report=a_draft())),
        ],
    ),
    "memact": (
        memact,
        "agent",
        [Act(tool="search_library", args=SEARCH), Act(answer=a_draft())],
    ),
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
async def test_every_graph_corrects_its_drafts_and_survives_a_crash_at_each_moment(name: str) -> None:
    graph, role, outputs = AGENTS[name]
    answers = {role: [*outputs, CORRECTED]}
    whole = await assert_survives_worker_loss(
        graph, QUESTION, documents=DOCUMENTS, answers=answers, revises=[role], budget=Budget(max_turns=3)
    )
    assert whole.report is not None
    assert whole.report.revision == ReportRevision(2, 0)
    assert [step.label for step in whole.list_steps(StepKind.ROLE_CALL)].count("correct") == 1


async def test_a_corrected_run_is_replayed() -> None:
    answers = {"generator": [a_draft(), CORRECTED]}
    run = await simulate_run(agentflow, QUESTION, documents=DOCUMENTS, answers=answers, revises=["generator"])
    assert run.report is not None
    assert run.report.revision == ReportRevision(2, 0)
    replayed = await replay_recording(agentflow, Recording(QUESTION, run.steps, reason=run.report.stop_reason))
    assert replayed.report is not None
    assert [s.text for s in replayed.report.sentences()] == ["The Heron carries 40 cars."]


def test_the_corrected_short_answer_keeps_the_quotes_of_its_correction() -> None:
    draft = a_draft().model_copy(update={"answer": "It carries 55 cars [E1]."})
    revision = DraftRevision(
        sentences=(
            RevisedSentence(id="s1", text="It carries 40 cars.", citations=(DraftCitation(evidence="E1", quote=FACT),)),
            RevisedSentence(id="s3", text=""),
            RevisedSentence(id="s9", text="Nobody asked for this."),
        )
    )
    revised = apply_revision(draft, revision)
    assert (revised.answer, [c.quote for c in revised.answer_citations]) == ("It carries 40 cars.", [FACT])
    assert [s.text for s in revised.sections[0].sentences] == ["The Heron carries 55 cars."]


def test_a_corrected_short_answer_that_only_names_its_passage_keeps_the_id() -> None:
    draft = a_draft().model_copy(update={"answer": "It carries 55 cars [E1]."})
    named = RevisedSentence(id="s1", text="It carries 40 cars.", citations=(DraftCitation(evidence="E1"),))
    assert apply_revision(draft, DraftRevision(sentences=(named,))).answer == "It carries 40 cars. [E1]"


def test_corrected_sentences_are_read_from_text() -> None:
    inputs = RevisionInput(question=QUESTION, sentences=(), passages=())
    assert parse_text_revision(render_text_revision(CORRECTED, inputs), inputs) == CORRECTED
    text = '- **s1**: The Heron carries 40 cars. [E1: "carries 40 cars"]\nSome words beside it.\n(s2): remove'
    assert parse_text_revision(text, inputs) == CORRECTED


@pytest.mark.parametrize("text", ["remove", "Remove this sentence.", "(removed)", "**remove**", '"Remove the line"'])
def test_a_sentence_is_removed_in_the_words_that_models_use(text: str) -> None:
    revision = parse_text_revision(f"s2: {text}", RevisionInput.model_construct())
    assert revision == DraftRevision(sentences=(RevisedSentence(id="s2", text=""),))


def test_a_corrected_line_has_no_marks_of_bold_text_but_its_quote_keeps_them() -> None:
    text = '**s1:** **Berths** are 40 m long. [E1: "**40 m** long"]'
    revision = parse_text_revision(text, RevisionInput.model_construct())
    assert isinstance(revision, DraftRevision)
    assert revision.sentences[0].text == "Berths are 40 m long."
    assert revision.sentences[0].citations[0].quote == "**40 m** long"


async def test_words_of_documents_stand_in_untrusted_blocks() -> None:
    ctx = revised_run(answering(a_draft(quote="carries forty five cars")))
    await carry_out(ctx, agentflow)
    (inputs,) = (one for _, one in ctx.role_inputs if isinstance(one, RevisionInput))
    excerpt = inputs.sentences[0].problems[0].excerpt
    assert "40 cars" in excerpt
    last = render_revision_prompt(inputs)[-1].text
    assert f"\n{excerpt}\n" in last, "on lines of its own, between the borders of the block"


def test_a_corrected_row_or_item_stays_in_its_table_or_list() -> None:
    layouts = (Layout.PARAGRAPH, Layout.CONTINUED, Layout.ITEM, Layout.HEADER, Layout.ROW)
    sentences = tuple(DraftSentence(text=f"| {layout} |", layout=layout) for layout in layouts)
    draft = ReportDraft(title="T", answer="", sections=(DraftSection(heading="H", sentences=sentences),))
    revision = DraftRevision(sentences=tuple(RevisedSentence(id=f"s{n}", text=f"| new {n} |") for n in range(1, 6)))
    (section,) = apply_revision(draft, revision).sections
    assert [(s.text, s.layout) for s in section.sentences] == [
        (f"| new {n} |", layout) for n, layout in enumerate(layouts, 1)
    ]


def test_a_corrected_short_answer_has_the_quotes_of_its_correction() -> None:
    wrong = (DraftCitation(evidence="E1", quote="carries 55 cars"),)
    draft = a_draft().model_copy(update={"answer": "It carries 55 cars.", "answer_citations": wrong})
    right = (DraftCitation(evidence="E1", quote=FACT),)
    revision = DraftRevision(sentences=(RevisedSentence(id="s1", text="It carries 40 cars.", citations=right),))
    revised = apply_revision(draft, revision)
    assert (revised.answer, revised.answer_citations) == ("It carries 40 cars.", right)
