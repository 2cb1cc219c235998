"""Follow-ups: the kind that rules choose, what an edit may state, and how findings are merged."""

import pytest

from offing.sdk import DraftCitation, DraftSection, DraftSentence, FollowUpKind, InvalidOutput, Layout, ReportDraft
from offing_graphs.extractive.report import METHOD_NOTE, SINGLE_PART_HEADING
from offing_graphs.shared.follow_up.edit import edit_by_rules, restrict_edit
from offing_graphs.shared.follow_up.kind import (
    KindChoice,
    KindInput,
    choose_kind_by_rules,
    is_edit,
    parse_kind,
    render_kind,
    render_kind_prompt,
    render_outline,
)
from offing_graphs.shared.follow_up.merge import MergeInput, apply_merge, merge_by_rules, render_merge_prompt
from offing_graphs.shared.schemas import OutlinePart, RetrievedPassage, TaskContext


def sentence(text: str, *quotes: str, layout: Layout = Layout.STATEMENT) -> DraftSentence:
    return DraftSentence(
        text=text, citations=tuple(DraftCitation(evidence="E1", quote=quote) for quote in quotes), layout=layout
    )


def section(heading: str, *sentences: DraftSentence) -> DraftSection:
    return DraftSection(heading=heading, sentences=sentences)


FERRY = sentence("The Heron carries 40 cars.", "carries 40 cars")
TIDES = sentence("The tide gauge is calibrated twice a year.", "calibrated twice a year")
HARBOR = sentence("A berth costs 12 crowns.", "costs 12 crowns")
REPORT = ReportDraft(
    title="The harbor",
    answer="The Heron carries 40 cars.",
    answer_citations=FERRY.citations,
    sections=(section("Ferry", FERRY, HARBOR), section("Tide gauge", TIDES)),
    limits="Nothing on 2025.",
)


# Kinds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Shorten it",
        "Please translate this into German.",
        "Can you rewrite it in a friendlier tone?",
        "make it shorter",
        "Make the whole report more formal, please",
        "Write it as bullet points",
        "Drop the section on the tide gauge",
        "In French, please",
        "Now summarize it in 3 sentences",
    ],
)
def test_requests_for_another_form_are_edits(text: str) -> None:
    assert is_edit(text)


@pytest.mark.parametrize(
    "text",
    [
        "How was the report on the shortened pier translated?",
        "What does a berth cost?",
        "Rewrite it and add the prices of 2025",
        "Which list names the ferry?",
        "Why did they drop the toll?",
        "Summarize the latest research on tides",
    ],
)
def test_questions_and_requests_for_new_facts_are_no_edits(text: str) -> None:
    assert not is_edit(text)


def passage(text: str) -> RetrievedPassage:
    return RetrievedPassage(id="E1", source="s", text_id="t", start=0, end=len(text), title="Ferry", text=text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("How many cars does the Heron carry?", FollowUpKind.QUESTION),
        ("Shorten it", FollowUpKind.EDIT),
        ("Who owns the railway to the mountains?", FollowUpKind.RESEARCH),
        ("Look up how many cars the Heron carries", FollowUpKind.RESEARCH),
        ("How many cars does the Heron carry? " + "It matters a lot to everyone here. " * 4, FollowUpKind.RESEARCH),
    ],
)
def test_rules_choose_the_kind_by_words_and_evidence(text: str, kind: FollowUpKind) -> None:
    chosen, why = choose_kind_by_rules(TaskContext(question=text), REPORT, (passage("The Heron carries 40 cars."),))
    assert (chosen, bool(why)) == (kind, True)


def test_a_report_that_states_nothing_is_researched_anew() -> None:
    empty = ReportDraft(title="Nothing", sections=())
    assert choose_kind_by_rules(TaskContext(question="Shorten it"), empty, ())[0] is FollowUpKind.RESEARCH


def test_the_decision_takes_a_task_whose_plan_a_person_has_set() -> None:
    task = TaskContext(question="Shorten it", plan=(OutlinePart(text="Why?", must_answer=True),))
    inputs = KindInput(**dict(task), outline=render_outline(REPORT))
    assert (inputs.plan, "Tide gauge" in inputs.outline) == (task.plan, True)


def test_the_text_format_of_the_decision_reads_what_it_writes() -> None:
    inputs = KindInput(question="Shorten it", outline=render_outline(REPORT))
    choice = KindChoice(kind="edit", why="It asks for less.")
    assert parse_kind(render_kind(choice, inputs), inputs) == choice
    assert isinstance(parse_kind("<kind>dance</kind><why>x</why>", inputs), InvalidOutput)
    assert "Tide gauge" in str(render_kind_prompt(inputs))


# Edits ----------------------------------------------------------------------------------------------------------------


def test_an_edit_keeps_citations_of_the_report_or_parts_of_them_and_no_others() -> None:
    edited = ReportDraft(
        title="",
        answer="Vierzig Autos.",
        sections=(
            section(
                "Fähre",
                sentence("Die Heron nimmt 40 Autos mit.", "40 cars"),
                sentence("Sie ist rot.", "painted bright red"),
                sentence("Sie fährt 1950 zum ersten Mal."),
            ),
            section("Neues", sentence("Ein Flugzeug landet.")),
        ),
    )
    restricted = restrict_edit(edited, REPORT)
    assert [s.heading for s in restricted.sections] == ["Fähre"]
    assert [s.text for s in restricted.sections[0].sentences] == ["Die Heron nimmt 40 Autos mit."]
    assert (restricted.title, restricted.answer, restricted.limits) == ("The harbor", "Vierzig Autos.", REPORT.limits)


def test_an_edit_may_have_as_many_sentences_without_a_citation_as_the_report_had() -> None:
    earlier = REPORT.model_copy(update={"sections": (section("Ferry", FERRY, sentence("It is liked.")),)})
    edited = REPORT.model_copy(
        update={"sections": (section("Ferry", sentence("Man mag sie."), sentence("Sie ist schön."), FERRY),)}
    )
    texts = [s.text for s in restrict_edit(edited, earlier).sections[0].sentences]
    assert texts == ["Man mag sie.", FERRY.text]


def test_an_answer_with_a_new_number_is_that_of_the_report() -> None:
    edited = REPORT.model_copy(update={"answer": "It carries 41 cars.", "answer_citations": ()})
    assert restrict_edit(edited, REPORT).answer == REPORT.answer


def test_rules_shorten_remove_sections_and_make_lists() -> None:
    shorter = edit_by_rules(REPORT, "Please shorten it")
    assert shorter is not None
    assert [len(s.sentences) for s in shorter.sections] == [1, 1]
    without = edit_by_rules(REPORT, "Drop the section on the tide gauge")
    assert without is not None
    assert [s.heading for s in without.sections] == ["Ferry"]
    listed = edit_by_rules(REPORT, "Turn it into bullet points")
    assert listed is not None
    assert {s.layout for one in listed.sections for s in one.sentences} == {Layout.ITEM}


@pytest.mark.parametrize("text", ["Translate it into German", "Drop the section on trains", "Make it friendlier"])
def test_other_edits_need_a_model(text: str) -> None:
    assert edit_by_rules(REPORT, text) is None


# Merged reports -------------------------------------------------------------------------------------------------------

FINDINGS = ReportDraft(
    title="Keepers",
    answer="Keepers trimmed wicks.",
    sections=(section("Keepers", sentence("Keepers trimmed wicks.", "trimmed the wicks")), section("Ferry", TIDES)),
    limits="Not found: wages.",
)


def test_a_model_keeps_drops_and_rewrites_sections_and_what_it_leaves_out_is_kept() -> None:
    merged = ReportDraft(
        title="The harbor and its keepers",
        answer="Both.",
        sections=(
            section("", sentence("drop P1")),
            section("Keepers", sentence("keep N1")),
            section("Ferries", sentence("replaces N2"), HARBOR),
        ),
    )
    done = apply_merge(merged, REPORT, FINDINGS)
    assert [s.heading for s in done.sections] == ["Keepers", "Ferries", "Tide gauge"]
    assert done.sections[0].sentences == FINDINGS.sections[0].sentences
    assert done.sections[1].sentences == (HARBOR,)
    assert done.limits == "Nothing on 2025. Not found: wages."


def test_a_merge_that_names_nothing_keeps_both_reports() -> None:
    done = apply_merge(ReportDraft(title="", sections=()), REPORT, FINDINGS)
    assert [s.heading for s in done.sections] == ["Ferry", "Tide gauge", "Keepers"]
    assert (done.title, done.answer, done.answer_citations) == (REPORT.title, REPORT.answer, REPORT.answer_citations)


def test_without_a_model_sections_of_the_same_heading_become_one() -> None:
    done = merge_by_rules(REPORT, FINDINGS, "What did keepers do?")
    assert [s.heading for s in done.sections] == ["Ferry", "Tide gauge", "Keepers"]
    assert done.sections[0].sentences == (FERRY, HARBOR, TIDES)
    assert done.answer == f"{REPORT.answer} {FINDINGS.answer}"


def test_without_a_model_sections_for_a_single_part_are_named_by_their_question() -> None:
    first = REPORT.model_copy(update={"sections": (section(SINGLE_PART_HEADING, FERRY),), "limits": METHOD_NOTE})
    second = FINDINGS.model_copy(update={"sections": (section(SINGLE_PART_HEADING, TIDES),), "limits": METHOD_NOTE})
    done = merge_by_rules(first, second, "How often is the gauge calibrated?")
    assert [s.heading for s in done.sections] == [SINGLE_PART_HEADING, "How often is the gauge calibrated?"]
    assert done.limits == METHOD_NOTE


def test_the_prompt_of_a_merge_numbers_the_sections_of_both_reports() -> None:
    inputs = MergeInput(question="What did keepers do?", report=REPORT, findings=FINDINGS)
    text = str(render_merge_prompt(inputs))
    assert all(f"Section {id}:" in text for id in ("P1", "P2", "N1", "N2"))
    (prompt,) = (m.text for m in render_merge_prompt(inputs) if "Section P1" in m.text)
    assert 'The Heron carries 40 cars. [E1: "carries 40 cars"]' in prompt.split("Section P1")[0]
