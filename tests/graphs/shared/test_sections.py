"""Long reports: an outline, sections side by side from their own passages, and the opening. What fails is quoted."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
import pytest

from offing.core.model import FailureKind, InvalidOutput
from offing.core.report_style import ReportLength, ReportStyle
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import DraftCitation, DraftSection, DraftSentence, EngineFailure, Layout, ReportDraft, ReportRevision
from offing.testing import Recording, assert_survives_worker_loss, replay_recording, simulate_run
from offing.testing.recording import recording_to_json
from offing_graphs.agentflow import graph as agentflow
from offing_graphs.research_team import graph as research_team
from offing_graphs.router import graph as router
from offing_graphs.shared.revision import DraftRevision, RevisedSentence, RevisionInput
from offing_graphs.shared.schemas import Analysis, RetrievedPassage, WriterInput
from offing_graphs.shared.section_formats import (
    parse_text_opening,
    parse_text_outline,
    parse_text_section,
    render_text_opening,
    render_text_outline,
    render_text_section,
)
from offing_graphs.shared.section_prompts import (
    render_opening_prompt,
    render_outline_prompt,
    render_section_prompt,
)
from offing_graphs.shared.section_schemas import (
    Opening,
    OpeningInput,
    Outline,
    OutlineSection,
    SectionInput,
    WrittenSection,
)
from offing_graphs.shared.sections import build_section_inputs, quote_section, select_section_evidence
from tests.graphs.corpus import FERRY, TIDES, harbour
from tests.graphs.in_memory_context import InMemoryContext, carry_out

DOCUMENTS = {"tides.md": TIDES, "ferry.md": FERRY}
QUESTION = "How many cars does the Heron carry, and what drives the Tern?"
LONG = ReportStyle(length=ReportLength.LONG)
OUTLINE = Outline(
    title="Two ferries",
    sections=(
        OutlineSection(heading="The Heron", answers="How many cars does the Heron carry?", evidence=("E1",)),
        OutlineSection(heading="The Tern", answers="What drives the Tern?", evidence=("E2",)),
    ),
)
QUOTES = {"The Heron": "carries 40 cars", "The Tern": "electric passenger ferry"}


PLAIN_OPENING = Opening(title="Ferries of Saltmere", answer="There are two ferries.")


def find_passage(inputs: SectionInput) -> str:
    """The id of the passage that has the words of the section."""
    return next(p.id for p in inputs.passages if QUOTES[inputs.heading] in " ".join(p.text.split()))


def write_section(inputs: SectionInput, text: str = "") -> WrittenSection:
    citation = DraftCitation(evidence=find_passage(inputs), quote=QUOTES[inputs.heading])
    sentence = DraftSentence(
        text=text or f"It {QUOTES[inputs.heading]}.", citations=(citation,), layout=Layout.PARAGRAPH
    )
    limits = "Its price is unknown." if inputs.heading == "The Tern" else ""
    return WrittenSection(parts=(DraftSection(heading=inputs.heading, sentences=(sentence,)),), limits=limits)


def write_opening(inputs: OpeningInput) -> Opening:
    ids = [citation.evidence for part in inputs.sections for s in part.sentences for citation in s.citations]
    limits = "What the Tern cost is unknown." if inputs.limits else ""
    return Opening(title="Ferries of Saltmere", answer=f"The Heron carries 40 cars [{ids[0]}].", limits=limits)


def answer(inputs: Any, changed: Mapping[str, Any]) -> Any:
    """What the writer answers to each of its calls; `changed` by the heading of a section, or by the kind of call."""
    if isinstance(inputs, SectionInput):
        return changed.get(inputs.heading) or write_section(inputs)
    if isinstance(inputs, OpeningInput):
        return changed.get("opening") or write_opening(inputs)
    if isinstance(inputs, RevisionInput):
        return changed["revision"]
    return changed.get("outline") or OUTLINE


def writer(changed: Mapping[str, Any] = MappingProxyType({})) -> Callable[[Any], Any]:
    return lambda inputs: answer(inputs, changed)


async def write(
    graph: Any = agentflow, style: ReportStyle | None = LONG, changed: Mapping[str, Any] = MappingProxyType({})
) -> InMemoryContext:
    ctx = InMemoryContext(
        harbour(),
        QUESTION,
        engines={"generator": writer(changed)},
        revisers=frozenset({"generator"}),
        report_style=style,
    )
    await carry_out(ctx, graph)
    return ctx


def list_labels(ctx: InMemoryContext) -> list[str]:
    return [step.label for step in ctx.steps if step.kind is StepKind.ROLE_CALL]


@pytest.mark.parametrize("graph", [agentflow, research_team, router], ids=lambda graph: graph.name)
async def test_a_long_report_has_an_outline_sections_and_an_opening(graph: Any) -> None:
    ctx = await write(graph)
    assert [label for label in list_labels(ctx) if label not in {"route", "judge"}] == [
        "outline",
        "section",
        "section",
        "opening",
    ]
    report = ctx.report
    assert report.title == "Ferries of Saltmere"
    assert [section.heading for section in report.sections] == ["The Heron", "The Tern"]
    assert all(s.is_supported for s in report.sentences())
    assert report.limits == "What the Tern cost is unknown."
    assert report.stop_reason == StopReason.ANSWERED


async def test_a_section_sees_its_own_passages_and_the_headings_of_all() -> None:
    ctx = await write()
    heron, tern = (inputs for _, inputs in ctx.role_inputs if isinstance(inputs, SectionInput))
    assert (heron.headings, heron.number, tern.number) == (("The Heron", "The Tern"), 1, 2)
    assert heron.max_words == 1_500
    prompt = render_section_prompt(heron)[-1].text
    assert "Write section 1, \u201cThe Heron\u201d. It answers: How many cars" in prompt
    assert "Length:" not in prompt


async def test_a_failed_section_consists_of_quotes_and_the_others_stay() -> None:
    failure = EngineFailure(FailureKind.OVERLOADED, "The provider did not answer.")
    ctx = await write(changed={"The Tern": failure})
    heron, tern = ctx.report.sections
    assert heron.sentences[0].text == "It carries 40 cars."
    assert "electric passenger ferry" in tern.sentences[0].text
    assert tern.sentences[0].is_supported
    assert "The section \u201cThe Tern\u201d consists of quotes" in ctx.report.limits
    assert "The provider did not answer." in ctx.report.limits
    assert (ctx.report.status, ctx.report.stop_reason) == ("partial", StopReason.PROVIDER_DOWN)


@pytest.mark.parametrize(
    ("words", "quote"),
    [
        ("How many cars does the Heron carry?", "carries 40 cars"),
        ("\u82cd\u9e6d\u53f7", "carries 40 cars"),
    ],
)
def test_a_quoted_section_is_never_empty(words: str, quote: str) -> None:
    inputs = a_section_input(
        question=words,
        answers=words,
        headings=(words,),
        passages=(a_passage(1, "# Ferries\n\nThe Heron carries 40 cars."),),
    )
    (section,) = quote_section(inputs).parts
    assert quote in section.sentences[0].text
    assert section.sentences[0].citations[0].quote.startswith("The Heron")


async def test_without_budget_for_a_section_the_report_states_the_limit() -> None:
    failure = EngineFailure(FailureKind.BUDGET_EXHAUSTED, "No budget left.", stop_reason="token_limit")
    ctx = await write(changed={"The Heron": failure, "opening": failure})
    assert ctx.report.stop_reason == StopReason.TOKEN_LIMIT
    assert ctx.report.title == "Two ferries"
    assert ctx.report.answer is not None
    assert "The short answer consists of quotes" in ctx.report.limits
    assert "Its price is unknown." in ctx.report.limits


async def test_if_no_section_could_be_written_the_whole_report_quotes() -> None:
    failure = EngineFailure(FailureKind.OVERLOADED, "Away.")
    ctx = await write(changed={"The Heron": failure, "The Tern": failure})
    assert ctx.report.stop_reason == StopReason.PROVIDER_DOWN
    assert "opening" not in list_labels(ctx)
    assert "without a language model" in ctx.report.limits


async def test_without_a_usable_outline_the_parts_of_the_question_are_the_sections() -> None:
    failure = EngineFailure(FailureKind.INVALID_OUTPUT, "No section.")
    ctx = InMemoryContext(
        harbour(),
        QUESTION,
        engines={"generator": lambda inputs: failure if isinstance(inputs, WriterInput) else _write_any(inputs)},
        revisers=frozenset({"generator"}),
        report_style=LONG,
    )
    await carry_out(ctx, agentflow)
    (analysis,) = (step.payload["output"] for step in ctx.steps if step.kind is StepKind.ANALYSIS)
    assert [s.heading for s in ctx.report.sections] == analysis["sub_questions"]
    assert ctx.report.stop_reason == StopReason.ANSWERED


def _write_any(inputs: Any) -> Any:
    if isinstance(inputs, OpeningInput):
        return PLAIN_OPENING
    quote = " ".join(inputs.passages[0].text.split()[:5])
    sentence = DraftSentence(
        text=f"\u201c{quote}\u201d", citations=(DraftCitation(evidence=inputs.passages[0].id, quote=quote),)
    )
    return WrittenSection(parts=(DraftSection(heading=inputs.heading, sentences=(sentence,)),))


async def test_a_number_that_a_section_invents_goes_back_to_the_writer_once() -> None:
    wrong = WrittenSection(
        parts=(
            DraftSection(
                heading="The Heron",
                sentences=(DraftSentence(text="It carries 55 cars.", citations=(DraftCitation(evidence="E1"),)),),
            ),
        )
    )
    corrected = DraftRevision(sentences=(RevisedSentence(id="s2", text=""),))
    ctx = await write(changed={"The Heron": wrong, "revision": corrected, "opening": PLAIN_OPENING})
    assert ctx.report.revision == ReportRevision(1, 0)
    assert "55" not in str(ctx.report.sentences())


@pytest.mark.parametrize(
    "style",
    [
        None,
        ReportStyle(length=ReportLength.BRIEF),
        ReportStyle(length=ReportLength.STANDARD),
        ReportStyle(language="de"),
    ],
    ids=str,
)
async def test_other_reports_are_written_in_one_call(style: ReportStyle | None) -> None:
    draft = ReportDraft(title="T", answer="There are two ferries.", sections=())
    ctx = await write(style=style, changed={"outline": draft})
    assert list_labels(ctx) == ["write"]
    assert ctx.report.title == "T"


async def test_a_standard_report_has_sections_if_its_evidence_does_not_fit_in_one_prompt() -> None:
    long = "\n\n".join(f"# Ferry {n}\n\nFerry {n} carries {n} cars. {'It sails on and on. ' * 200}" for n in range(40))
    run = await simulate_run(
        agentflow,
        "How many cars does ferry 7 carry?",
        documents={"long.md": long},
        answers={"generator": lambda inputs: OUTLINE if isinstance(inputs, WriterInput) else _write_any(inputs)},
        revises=["generator"],
        report_style=ReportStyle(length=ReportLength.STANDARD),
        context_tokens={"generator": 4_096},
    )
    labels = [step.label for step in run.list_steps(StepKind.ROLE_CALL)]
    assert labels == ["outline", "section", "section", "opening"]


@pytest.mark.parametrize("graph", [agentflow, research_team], ids=lambda graph: graph.name)
async def test_a_crash_at_any_moment_repeats_no_recorded_section(graph: Any) -> None:
    whole = await assert_survives_worker_loss(
        graph,
        QUESTION,
        documents=DOCUMENTS,
        answers={"generator": writer()},
        revises=["generator"],
        report_style=LONG,
        budget=Budget(max_turns=3),
    )
    labels = [step.label for step in whole.list_steps(StepKind.ROLE_CALL)]
    assert [labels.count(one) for one in ("outline", "section", "opening")] == [1, 2, 1]


async def test_a_run_with_sections_is_replayed() -> None:
    run = await simulate_run(
        agentflow,
        QUESTION,
        documents=DOCUMENTS,
        answers={"generator": writer()},
        revises=["generator"],
        report_style=LONG,
    )
    assert run.report is not None
    recording = Recording(QUESTION, run.steps, reason=run.report.stop_reason, report_style=LONG, revises=("generator",))
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    replayed = await replay_recording(agentflow, stored)
    assert replayed.report is not None
    assert [s.heading for s in replayed.report.sections] == ["The Heron", "The Tern"]


# Prompts and formats --------------------------------------------------------------------------------------------------


def a_passage(number: int, text: str = "Some words.") -> RetrievedPassage:
    return RetrievedPassage(
        id=f"E{number}", source="s", text_id="t", start=number * 100, end=number * 100 + 90, title="Book", text=text
    )


def a_writer_input(*passages: RetrievedPassage, **changes: Any) -> WriterInput:
    fields: dict[str, Any] = {
        "question": QUESTION,
        "analysis": Analysis(summary="s", sub_questions=("How many cars?", "What drives the Tern?")),
        "evidence": passages,
        "reason": "answered",
        "report_style": LONG,
    }
    return WriterInput(**{**fields, **changes})


def a_section_input(**changes: Any) -> SectionInput:
    inputs, *_ = build_section_inputs(a_writer_input(a_passage(1), a_passage(2)), OUTLINE)
    return inputs.model_copy(update=changes)


def test_a_section_gets_the_passages_that_its_outline_names_and_others_only_if_these_are_few() -> None:
    evidence = tuple(a_passage(n, f"The Heron carries {n} cars.") for n in range(1, 30))
    many = OutlineSection(heading="Cars", evidence=tuple(f"E{n}" for n in range(3, 10)))
    assert [p.id for p in select_section_evidence(many, evidence)] == list(many.evidence)
    few = OutlineSection(heading="The Heron", evidence=("E9", "E77"))
    chosen = [p.id for p in select_section_evidence(few, evidence)]
    assert (len(chosen), "E9" in chosen) == (4, True)
    assert len(select_section_evidence(OutlineSection(heading="The Heron"), evidence)) == 12


def test_passages_for_which_the_outline_has_no_room_are_listed_in_an_index() -> None:
    passages = tuple(a_passage(n, f"Ferry {n}. " + "It sails on. " * 300) for n in range(1, 30))
    last = render_outline_prompt(a_writer_input(*passages))[-1]
    assert "Index of all passages" in last.text
    assert "\nE29 Book: Ferry 29." in last.text
    assert last.omitted_passages > 0
    assert "Index" not in render_outline_prompt(a_writer_input(*passages[:2]))[-1].text


def test_the_words_of_ten_thousand_are_shared_by_many_sections() -> None:
    sections = tuple(OutlineSection(heading=f"H{n}") for n in range(10))
    inputs = build_section_inputs(a_writer_input(a_passage(1)), Outline(title="T", sections=sections))
    assert {one.max_words for one in inputs} == {1_000}


def test_an_outline_is_read_from_text_in_the_forms_that_models_write() -> None:
    inputs = a_writer_input()
    assert parse_text_outline(render_text_outline(OUTLINE, inputs), inputs) == OUTLINE
    text = "Here it is.\n# Two ferries\n\n## The Heron\n- **Answers:** How many?\n- **Evidence:** [E1], E3\n## The Tern"
    assert parse_text_outline(text, inputs) == Outline(
        title="Two ferries",
        sections=(
            OutlineSection(heading="The Heron", answers="How many?", evidence=("E1", "E3")),
            OutlineSection(heading="The Tern"),
        ),
    )
    assert isinstance(parse_text_outline("No sections here.", inputs), InvalidOutput)
    assert isinstance(parse_text_outline("## H\n" * 13, inputs), InvalidOutput)


def test_a_section_is_read_from_text_under_the_heading_of_its_outline() -> None:
    inputs = a_section_input()
    text = 'It carries cars. [E1: "40 cars"] It sails.\n\n## Fuel\nIt burns diesel. [E1: "diesel"]\nLimits: Its age.'
    for head in ("", "## Another heading\n", "# Title\n\n## The Heron\n\n"):
        section = parse_text_section(head + text, inputs)
        assert isinstance(section, WrittenSection)
        assert [part.heading for part in section.parts] == ["The Heron", "Fuel"]
        assert [s.text for s in section.parts[0].sentences] == ["It carries cars.", "It sails."]
        assert section.limits == "Its age."
        assert parse_text_section(render_text_section(section, inputs), inputs) == section
    assert isinstance(parse_text_section("## The Heron\n", inputs), InvalidOutput)


def test_an_opening_is_read_from_text_without_the_sections_that_a_model_repeats() -> None:
    inputs = OpeningInput(question=QUESTION, title="Two ferries", sections=(), reason="answered")
    opening = Opening(title="Ferries", answer="It carries 40 cars [E1].", limits="The price.")
    assert parse_text_opening(render_text_opening(opening, inputs), inputs) == opening
    repeated = parse_text_opening("It carries 40 cars [E1].\n\n## The Heron\nIt sails.", inputs)
    assert repeated == Opening(title="Two ferries", answer="It carries 40 cars [E1].")
    assert isinstance(parse_text_opening("  ", inputs), InvalidOutput)


def test_the_opening_sees_ids_without_quotes_and_less_of_each_section_in_a_small_window() -> None:
    sentences = tuple(
        DraftSentence(text=f"Sentence {n} about ferries.", citations=(DraftCitation(evidence="E1", quote="copied"),))
        for n in range(400)
    )
    inputs = OpeningInput(
        question=QUESTION,
        title="T",
        sections=(DraftSection(heading="The Heron", sentences=sentences),),
        reason="answered",
        limits=("Its age.",),
    )
    text = render_opening_prompt(inputs)[-1].text
    assert "Sentence 399 about ferries. [E1]" in text
    assert "copied" not in text
    assert "- Its age." in text
    small = render_opening_prompt(inputs.model_copy(update={"context_tokens": 4_096}))[-1].text
    assert "for lack of room" in small
    assert "Sentence 399" not in small
