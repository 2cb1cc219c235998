"""How much of a paragraph is quoted, and which other quotes stand beside the best one."""

from itertools import pairwise, product
from typing import Any

from offing.core.report import Report
from offing_graphs.agentflow import graph
from offing_graphs.extractive.line_scores import score_lines
from offing_graphs.extractive.lines import build_pool
from offing_graphs.extractive.quote_ranges import MAX_SUBJECT_CHARS, find_quote_range
from offing_graphs.shared.schemas import RetrievedPassage
from tests.graphs.in_memory_context import InMemoryContext, Library, carry_out

LIGHTHOUSE = (
    "It was finished in the spring, and the builders left the island in the same week without a feast. "
    "Its lamp burns oil that two keepers carry up the stairs every evening, in weather of every kind. "
    "The keepers live below the lamp with their families and are relieved by boat every second month. "
    "Ships that pass in the night answer with their horns, as they have done since the oldest captains sailed. "
    "In fog a bell is rung from the gallery by the keeper whose watch it is, until the fog is gone again. "
)


def _quote(text: str, question: str, title: str) -> str:
    passage = RetrievedPassage(id="E1", title=title, text=text, source="s", text_id="t", start=0, end=len(text))
    best = score_lines(question, build_pool([passage]))[0]
    start, end = find_quote_range(best, question)
    return text[start:end]


async def _report(documents: list[tuple[str, str]], question: str) -> Report:
    context: Any = InMemoryContext(Library(documents), question)
    await carry_out(context, graph)
    return context.report


def test_a_sentence_that_says_everything_itself_is_quoted_alone() -> None:
    quote = _quote(LIGHTHOUSE, "How often are the keepers relieved by boat?", "Chapter four")
    assert quote.startswith("The keepers live")
    assert quote.endswith("every second month.")


def test_the_sentences_around_are_quoted_where_the_title_carries_the_subject() -> None:
    quote = _quote(LIGHTHOUSE, "What do the keepers of the Skarvholm lighthouse do?", "Skarvholm lighthouse")
    assert quote == LIGHTHOUSE.strip()


def test_a_quote_about_the_subject_has_a_maximum_width_and_whole_sentences() -> None:
    text = LIGHTHOUSE * 5
    quote = _quote(text, "What do the keepers of the Skarvholm lighthouse do?", "Skarvholm lighthouse")
    assert MAX_SUBJECT_CHARS / 2 < len(quote) <= MAX_SUBJECT_CHARS
    assert quote.endswith(".")
    assert quote[0].isupper()


def test_a_chinese_question_for_a_fact_gets_the_sentence_and_one_for_a_reason_the_paragraph() -> None:
    text = (
        "春天的时候工人们离开了这座小岛没有举行任何庆祝的仪式。守灯人每天晚上把油搬上楼梯无论天气怎样都不会停下来。"
        "守灯人和家人住在灯室的下面每两个月有船来接替他们一次。夜里经过的船只用汽笛回答老船长们一直都是这样做的。"
        "有雾的时候值班的人在走廊上敲钟直到雾气完全散去才停止。岛上没有树木也没有泉水饮用的水全部由船从大陆运来。"
        "孩子们在冬天学习认字和算术夏天则帮助大人们修理渔网。"
    )
    fact = _quote(text, "海鸦岛灯塔的守灯人多久有船来接替", "海鸦岛灯塔")
    assert "接替他们一次" in fact
    assert "孩子们" not in fact
    assert _quote(text, "海鸦岛灯塔的守灯人为什么有船来接替", "海鸦岛灯塔") == text


async def test_quotes_of_one_passage_do_not_repeat_each_other() -> None:
    duties = ("the lamp oiled", "a bell rung", "boats repaired", "letters carried", "goats milked", "nets dried")
    places = ("near rocks", "at dawn", "under stairs", "after storms", "behind walls", "during summer")
    text = "# Skarvholm lighthouse\n\n" + " ".join(
        f"The keepers of the lighthouse see {duty} {place}, {n} times. Nobody else there is allowed to touch any of it."
        for n, (duty, place) in enumerate(product(duties, places), start=100)
    )
    report = await _report([("a.md", text)], "What do the keepers of the Skarvholm lighthouse do?")
    spans = sorted((text.index(c.quote), text.index(c.quote) + len(c.quote)) for c in report.citations)
    quoted = [(start, end) for start, end in spans if not any(s < start and end <= e for s, e in spans)]
    assert len(quoted) > 1
    assert all(before[1] <= after[0] for before, after in pairwise(quoted))


async def test_the_short_answer_stays_short_where_the_section_quotes_the_paragraph() -> None:
    text = f"# Skarvholm lighthouse\n\n{LIGHTHOUSE}"
    report = await _report([("a.md", text)], "What do the keepers of the Skarvholm lighthouse do?")
    assert report.answer is not None
    section = report.sections[0].sentences[0].text
    assert LIGHTHOUSE.strip() in section
    assert len(report.answer.text) < len(section) / 2


async def test_a_sentence_with_much_fewer_words_of_the_question_is_no_other_quote() -> None:
    documents = [
        ("a.md", "# Rules\n\nAlso a late ferry pays the harbour of Brenn a fee of nine crowns for the berth."),
        ("b.md", "# Notes\n\nA late ferry gives the harbour of Brenn notice of the berth that it wants."),
    ]
    report = await _report(documents, "Which fee does a late ferry pay the harbour of Brenn for the berth?")
    assert {c.title for c in report.citations} == {"Rules"}


async def test_an_answered_report_quotes_a_sentence_that_reads_badly_alone() -> None:
    text = "# Log\n\nit then pays Brenn, which is late, a fee for the ferries, as"
    report = await _report([("a.md", text)], "Which fee does a late ferry pay the harbour of Brenn for the berth?")
    assert report.stop_reason == "answered"
    assert report.citations
