"""Text formats in other letters and styles: each repair gives the form that the strict parser accepts."""

import pytest

from offing.sdk import DraftCitation, DraftSentence, InvalidOutput, Layout, ReportDraft
from offing_graphs.agentflow.prompts import PLAN_LABELS
from offing_graphs.iterresearch import prompts as iterresearch
from offing_graphs.iterresearch.schemas import TurnPhase, Workspace
from offing_graphs.shared.report_repairs import repair_draft
from offing_graphs.shared.schemas import RetrievedPassage
from offing_graphs.shared.tagged_text import parse_labeled, parse_tagged
from offing_graphs.shared.text_repairs import build_label_repair, build_tag_repair, repair_citations, repair_report
from offing_graphs.shared.text_reports import parse_report, render_report

PLAN = "Justification: a\nContext: b\nSub-Goal: c\nTool Name: search"


def passage(id: str, name: str, text: str) -> RetrievedPassage:
    return RetrievedPassage(id=id, source=f"s-{name}", text_id="t", start=0, end=9, title=name, name=name, text=text)


POOL = (passage("E1", "pool.md", "It keeps ten connections."), passage("E2", "pool.md", "It closes them at night."))


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("**Justification:** a\n**Context**: b\n**Sub-goal:** c\n**tool name:** search", "labels"),
        ("### Justification: a\n1. Context: b\n- Sub Goal: c\n`Tool Name`: search", "labels"),
        (f"```\n{PLAN}\n```", "code_fence"),
        (f"Sure, here is the plan:\n{PLAN}", "prose_around"),
        (f"<think>So: it is.</think>\n{PLAN}", "thoughts"),
        ("Tool Name: search\nJustification: a\nContext: b\nSub-Goal: c", "order"),
    ],
)
def test_labels_are_found_in_other_letters_and_places(text: str, repair: str) -> None:
    repaired = build_label_repair(PLAN_LABELS)(text, None)
    blocks = parse_labeled(repaired.text, PLAN_LABELS)
    assert not isinstance(blocks, InvalidOutput), blocks.problem
    assert [block.text for block in blocks.values()] == ["a", "b", "c", "search"]
    assert repair in repaired.repairs


@pytest.mark.parametrize(
    "text", [PLAN, "Justification: a\nContext: b", "I would rather not.", PLAN + "\nContext: again"]
)
def test_what_is_right_or_beyond_repair_stays_as_it_is(text: str) -> None:
    repaired = build_label_repair(PLAN_LABELS)(text, None)
    assert (repaired.text, repaired.repairs) == (text, ())


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("<Tool>a</TOOL><args>{}</args>", "tags"),
        ("Here: <tool>a</tool> and <args>{}</args>.", "prose_around"),
        ("```xml\n<tool>a</tool>\n<args>{}</args>\n```", "prose_around"),
        ("<tool>a</tool><args>{}", "unclosed_tag"),
    ],
)
def test_blocks_are_found_in_other_letters_and_without_their_end(text: str, repair: str) -> None:
    repaired = build_tag_repair(("tool", "args"))(text, None)
    blocks = parse_tagged(repaired.text, ("tool", "args"))
    assert not isinstance(blocks, InvalidOutput), blocks.problem
    assert ([block.text for block in blocks.values()], repair in repaired.repairs) == (["a", "{}"], True)


def test_two_blocks_of_one_name_are_not_chosen_from() -> None:
    text = "<tool>a</tool><tool>b</tool><args>{}</args>"
    assert build_tag_repair(("tool", "args"))(text, None).text == text


@pytest.mark.parametrize(
    "mark",
    [
        "[E3: “so it is”]",
        '(E3: "so it is")',
        '[E3, "so it is"]',
        "[^E3: „so it is“]",
        '[Passage E3: "so it is"]',
        "[E3 «so it is»]",
    ],
)
def test_every_style_of_a_citation_with_words_is_read(mark: str) -> None:
    assert repair_citations(f"A. {mark} B.") == 'A. [E3: "so it is"] B.'


def test_several_passages_in_one_bracket_are_several_citations() -> None:
    assert repair_citations('A [E3: "a"; E5: "b"].') == 'A [E3: "a"] [E5: "b"].'
    assert repair_citations("A (E3, E5) [^E7].") == "A [E3, E5] [E7]."


@pytest.mark.parametrize("text", ['A. [E3: "a \\"b\\" c"]', "A [E3; E4].", "(see E3) [Energy] (E3-based)", "f(E3x)"])
def test_right_citations_and_other_brackets_stay(text: str) -> None:
    assert repair_citations(text) == text


def test_bold_text_is_plain_except_within_quotes() -> None:
    repaired = repair_report('# T\nA **big** 2**3 thing [E1: "a **big** thing"]')
    assert repaired.text == '# T\nA big 2**3 thing [E1: "a **big** thing"]'


def test_a_source_stands_for_its_passage_only_if_one_holds_the_words() -> None:
    repaired = repair_report('# T\nA. [pool.md: "ten connections"] B. [pool.md]', POOL)
    assert repaired.text == '# T\nA. [E1: "ten connections"] B. [pool.md]'


def test_a_draft_with_a_report_in_its_answer_becomes_that_report() -> None:
    whole = "# T\nTen [E1].\n\n## A\nIt keeps ten. (E1: “ten connections”)"
    draft, repairs = repair_draft(ReportDraft(title="X", answer=whole, sections=()), POOL)
    assert repairs == ("report_in_answer",)
    assert (draft.title, draft.answer) == ("T", "Ten [E1].")
    assert draft.sections[0].sentences[0].citations == (DraftCitation(evidence="E1", quote="ten connections"),)


@pytest.mark.parametrize("name", ["pool.md", "passage E2", "[E2]", "e2"])
def test_a_citation_that_names_no_id_is_resolved(name: str) -> None:
    citation = DraftCitation(evidence=name, quote="closes them at night")
    draft = parse_report("# T\n## A\n- It closes.", "")
    assert isinstance(draft, ReportDraft)
    sentence = draft.sections[0].sentences[0].model_copy(update={"citations": (citation,)})
    section = draft.sections[0].model_copy(update={"sentences": (sentence,)})
    repaired, repairs = repair_draft(draft.model_copy(update={"sections": (section,)}), POOL)
    assert (repaired.sections[0].sentences[0].citations[0].evidence, repairs) == ("E2", ("evidence_id",))


PROSE = """# Pools
Ten at most [E1]. Not at night. [E2: "at night"]

## Size
The pool keeps ten. [E1: "ten connections"] Dr. Ng saw 3.5 of them e.g. in May [E2: "3.5"]. Nobody knows more.

A second paragraph. [E2]
- an item [E1: "a"]
- an item
  on two lines

| day | count |
| --- | --- |
| Mon | 10 [E1: "ten"] |
| Tue | 3 | [E2: "three"]

Limits: little."""


def test_prose_lists_and_tables_keep_their_layout_and_each_sentence_its_citations() -> None:
    draft = parse_report(PROSE, "other")
    assert isinstance(draft, ReportDraft)
    assert (draft.answer, draft.answer_citations) == (
        "Ten at most [E1]. Not at night.",
        (DraftCitation(evidence="E2", quote="at night"),),
    )
    read = [(s.layout.value, s.text, [c.quote for c in s.citations]) for s in draft.sections[0].sentences]
    assert read == [
        ("paragraph", "The pool keeps ten.", ["ten connections"]),
        ("continued", "Dr. Ng saw 3.5 of them e.g. in May.", ["3.5"]),
        ("continued", "Nobody knows more.", []),
        ("paragraph", "A second paragraph. [E2]", []),
        ("item", "an item", ["a"]),
        ("item", "an item on two lines", []),
        ("header", "| day | count |", []),
        ("row", "| Mon | 10 |", ["ten"]),
        ("row", "| Tue | 3 |", ["three"]),
    ]
    assert parse_report(render_report(draft), "other") == draft


def test_a_statement_is_recorded_without_a_layout() -> None:
    assert DraftSentence(text="A.").model_dump(mode="json") == {"text": "A.", "citations": []}
    assert DraftSentence(text="A.", layout=Layout.ITEM).model_dump(mode="json")["layout"] == "item"


def test_the_last_round_needs_no_report_beside_its_answer() -> None:
    workspace = Workspace(question="Why?", phase=TurnPhase.FINAL)
    repaired = iterresearch.repair_output_text("<Answer># T\nSo [E1].</Answer>", workspace)
    output = iterresearch.parse_output(repaired.text, workspace)
    assert not isinstance(output, InvalidOutput), output.problem
    assert repaired.repairs == ("tags", "missing_report")


@pytest.mark.parametrize("arguments", ['**Arguments:** {"query": "tide"}', '- arguments: {"query": "tide"}'])
def test_the_label_of_the_arguments_of_a_plan_is_repaired_as_well(arguments: str) -> None:
    text = f"**Tool Name:** search\n**Justification:** j\n**Context:** c\n**Sub-Goal:** g\n{arguments}"
    repaired = build_label_repair(PLAN_LABELS, ("Arguments",))(text, None)
    assert repaired.text == (
        'Justification: j\nContext: c\nSub-Goal: g\nTool Name: search\nArguments: {"query": "tide"}'
    )
