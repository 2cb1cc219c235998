"""Faults that reports of models contain: each is marked, and nothing that holds is."""

from decimal import Decimal
from uuid import UUID

import pytest

from offing.core.citation import MAX_NEIGHBOR_CHARS, ClaimContext, verify_citations
from offing.core.claim_support import ClaimSupport, find_unsupported_values
from offing.core.claim_table import build_claim_table, count_verdicts
from offing.core.draft_check import DraftCheck, DraftProblem, ProblemSentence, check_draft, find_closest_words
from offing.core.quote_matching import locate_quote
from offing.core.report import (
    ClaimVerdict,
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Layout,
    Report,
    ReportDraft,
    Sentence,
)
from offing.core.report_formats import render_markdown, report_to_json
from offing.core.report_labels.english import ENGLISH
from offing.core.report_texts import describe_completion
from offing.core.run import StopReason
from offing.core.table_scale import read_table_values
from offing.core.tool import SourceSpan

TEXT_ID, SOURCE = UUID(int=7), UUID(int=8)
FIRST = "Sales rose by 3.5\\% in 2019. The fleet has twelve ships."
SECOND = "A storm on 12 May 2020 sank the Heron, which Ada Lund built."
TEXT = f"{FIRST}\n\n{SECOND}\n"
PASSAGES = {
    "E1": Evidence("E1", SourceSpan(TEXT_ID, 0, len(FIRST)), FIRST, SOURCE, "Ships of Gullholm"),
    "E2": Evidence(
        "E2", SourceSpan(TEXT_ID, len(FIRST) + 2, len(FIRST) + 2 + len(SECOND)), SECOND, SOURCE, "Ships of Gullholm"
    ),
}


def a_sentence(text: str, *citations: tuple[str, str]) -> DraftSentence:
    return DraftSentence(text=text, citations=tuple(DraftCitation(evidence=e, quote=q) for e, q in citations))


def a_draft(*sentences: DraftSentence, answer: str = "") -> ReportDraft:
    return ReportDraft(title="T", answer=answer, sections=(DraftSection(heading="H", sentences=sentences),))


def read_text(span: SourceSpan) -> str:
    return TEXT[span.start : span.end]


def a_report(*sentences: DraftSentence, answer: str = "", context: ClaimContext | None = None) -> Report:
    draft = a_draft(*sentences, answer=answer)
    return verify_citations(draft, PASSAGES, read_text, StopReason.ANSWERED, context=context or ClaimContext())


def only_sentence(*citations: tuple[str, str], text: str = "It rose.") -> tuple[Sentence, Report]:
    report = a_report(a_sentence(text, *citations))
    return report.sections[0].sentences[0], report


def check(*sentences: DraftSentence) -> DraftCheck:
    return check_draft(a_draft(*sentences), PASSAGES, read_text, ClaimContext())


def test_an_invented_number_with_a_real_quote_is_marked() -> None:
    sentence, report = only_sentence(("E1", "The fleet has twelve ships."), text="The fleet has 42 ships, up by 7%.")
    assert sentence.unsupported_values == ("42", "7%")
    assert not sentence.is_supported
    assert sentence.verdict is ClaimVerdict.PARTLY
    assert "(not in the quotes: 42, 7%)" in render_markdown(report)


def test_a_percentage_is_found_in_a_text_with_latex_escapes() -> None:
    sentence, report = only_sentence(("E1", "Sales rose by 3.5% in 2019."), text="Sales rose by 3.5 percent.")
    assert report.citations[0].quote == "Sales rose by 3.5\\% in 2019."
    assert sentence.is_supported


def test_a_quote_in_the_neighboring_passage_is_cited_where_it_stands() -> None:
    sentence, report = only_sentence(("E1", "A storm on 12 May 2020"))
    assert sentence.citations == (1,)
    assert report.citations[0].span.start == TEXT.index("A storm")


def test_a_quote_that_spans_two_passages_is_cited_whole() -> None:
    _, report = only_sentence(("E2", "twelve ships. A storm on 12 May 2020"))
    assert report.citations[0].quote == "twelve ships.\n\nA storm on 12 May 2020"


def test_a_quote_far_away_in_the_same_text_is_rejected() -> None:
    far = FIRST + " " * (MAX_NEIGHBOR_CHARS + 1) + SECOND
    draft = a_draft(a_sentence("It sank.", ("E1", "A storm on 12 May 2020")))
    report = verify_citations(draft, PASSAGES, lambda span: far[span.start : span.end], StopReason.ANSWERED)
    assert not report.sections[0].sentences[0].citations


def test_an_evidence_id_that_does_not_exist_supports_nothing() -> None:
    sentence, _ = only_sentence(("E9", "twelve ships"))
    assert sentence.rejected == ("E9 was not retrieved in this run.",)
    assert sentence.verdict is ClaimVerdict.NOT_FOUND


def test_an_id_alone_does_not_make_a_passage_into_support() -> None:
    sentence, report = only_sentence(("E1", ""), text="The fleet has twelve ships.")
    assert (sentence.citations, sentence.passages, sentence.is_supported) == ((), (1,), False)
    assert "[1] *(passage only, no words quoted)*" in render_markdown(report)


def test_the_lead_is_supported_by_the_quotes_of_its_evidence_that_state_its_numbers() -> None:
    report = a_report(
        a_sentence("It rose.", ("E1", "Sales rose")),
        a_sentence("It is big.", ("E1", "The fleet has twelve ships.")),
        a_sentence("In 2019 it did.", ("E1", "by 3.5% in 2019")),
        answer="Sales rose by 3.5 % with 12 ships [E1].",
    )
    assert report.answer is not None
    assert report.answer.is_supported
    assert len(report.answer.citations) == 3


def test_a_lead_without_sections_is_supported_by_the_words_that_it_quotes_itself() -> None:
    report = a_report(answer="The record says: \u201cThe fleet has twelve ships\u201d [E1].")
    assert report.answer is not None
    assert report.answer.is_supported
    assert report.citations[0].quote == "The fleet has twelve ships"


def test_a_calculation_of_the_run_supports_a_rounded_number() -> None:
    cited = a_sentence("On average 3.7 ships.", ("E1", "twelve ships"))
    assert not a_report(cited).sections[0].sentences[0].is_supported
    assert a_report(cited, context=ClaimContext(calculations=("3.6667",))).sections[0].sentences[0].is_supported


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("It fell by 3.5 percent.", "a fall of 3.5\\,\\%"),
        ("It has 1000 members.", "its 1,000 members"),
        ("It has 1,000 members.", "its 1 000 members"),
        ("It has 1{,}000 members.", "1.000 Mitglieder"),
        ("It is 12 km away.", "12\u202fkm, twelve kilometers"),
        ("It has 12 ships.", "It has twelve ships."),
        ("It cost 3,200,000.", "It cost 3.2 million."),
        ("It was signed on May 12, 2020.", "signed on 2020-05-12"),
        ("It was signed on 2020-05-12.", "signed on 12 May 2020"),
        ("It was signed in May 2020.", "signed on 12.05.2020"),
        (
            "\u57282020\u5e745\u670812\u65e5\u589e\u957f3.5%",
            "\u4e8c\u3007\u4e8c\u3007\u5e74\u4e94\u6708\u5341\u4e8c\u65e5\u589e\u957f3.5%",
        ),
        ("The study of the Bureau was read by Ada Lund.", "read by A. Lund and Ada for the study of the bureau"),
        ("However Smith says that the fleet is old.", "that the fleet is old"),
        ("(1) It is old and (2) it is slow.", "It is old and it is slow."),
    ],
)
def test_another_way_to_write_a_value_is_no_other_value(sentence: str, quote: str) -> None:
    assert find_unsupported_values(sentence, ClaimSupport((quote,))) == ()


@pytest.mark.parametrize(
    ("sentence", "quote", "unsupported"),
    [
        ("It fell by 3.6 percent.", "a fall of 3.5\\,\\%", ("3.6 percent",)),
        ("It was signed on 13 May 2020.", "signed on 12 May 2020", ("13 May 2020",)),
        ("It was signed in May 2021.", "signed on 12 May 2020", ("May 2021",)),
        ("It was signed by Jane Doe and the mayor of the city.", "signed by the mayor of the city", ("Jane Doe",)),
        (
            "\u589e\u957f42%\uff0c\u89c1\u300a\u7ea2\u697c\u68a6\u300b",
            "\u589e\u957f\u4e86\u4e09\u6210",
            ("42%", "\u7ea2\u697c\u68a6"),
        ),
    ],
)
def test_another_value_is_named(sentence: str, quote: str, unsupported: tuple[str, ...]) -> None:
    assert find_unsupported_values(sentence, ClaimSupport((quote,))) == unsupported


def test_titles_and_the_question_support_names() -> None:
    sentence = "The ferry of Ada Lund sank in the bay."
    quotes = ("the ferry sank in the bay",)
    assert find_unsupported_values(sentence, ClaimSupport(quotes)) == ("Ada Lund",)
    assert find_unsupported_values(sentence, ClaimSupport(quotes, titles=("Ada Lund",))) == ()
    assert find_unsupported_values(sentence, ClaimSupport(quotes, question="Who was Ada Lund?")) == ()


@pytest.mark.parametrize(
    ("text", "quote", "located"),
    [
        ("rose by 3.5\\% in Fig.~3", "rose by 3.5% in Fig. 3", "rose by 3.5\\% in Fig.~3"),
        (
            "the $\\alpha$-helix of Poincar\\'e",
            "the \u03b1-helix of Poincar\u00e9",
            "the $\\alpha$-helix of Poincar\\'e",
        ),
        ("``so called'' nets", '"so called" nets', "``so called'' nets"),
        ("pages 3--10", "pages 3-10", "pages 3--10"),
        ("the connec- tion pool", "the connection pool", "the connec- tion pool"),
        ("a \\emph{deep} net", "a deep net", "a \\emph{deep} net"),
        ("12\\,km away", "12 km away", "12\\,km away"),
    ],
)
def test_a_quote_is_found_through_latex_and_hyphenation(text: str, quote: str, located: str) -> None:
    position = locate_quote(quote, text)
    assert position is not None
    assert text[position[0] : position[1]] == located


@pytest.mark.parametrize("quote", ["500", "3", "500 ships"])
def test_a_part_of_a_number_is_no_quote(quote: str) -> None:
    assert locate_quote(quote, "it has 3,500 ships") is None


def test_the_claim_table_has_a_verdict_for_each_sentence_that_cites() -> None:
    report = a_report(
        a_sentence("The fleet has 12 ships.", ("E1", "The fleet has twelve ships.")),
        a_sentence("The fleet has 42 ships.", ("E1", "The fleet has twelve ships.")),
        a_sentence("It sank.", ("E1", "words that nobody wrote")),
        a_sentence("This is a link between two thoughts."),
    )
    assert [(c.sentence.id, c.verdict.value, c.citations) for c in build_claim_table(report)] == [
        ("s1", "supported", (1,)),
        ("s2", "partly", (1,)),
        ("s3", "not_found", ()),
    ]
    assert count_verdicts(build_claim_table(report)) == dict.fromkeys(
        (ClaimVerdict.SUPPORTED, ClaimVerdict.PARTLY, ClaimVerdict.NOT_FOUND), 1
    )
    assert [claim["reasons"] for claim in report_to_json(report)["claims"]][1] == ["not in the quotes: 42"]


def test_a_complete_report_without_a_supported_sentence_does_not_say_that_its_evidence_suffices() -> None:
    assert "judged sufficient" not in describe_completion(a_report(a_sentence("Nothing was found.")), ENGLISH)
    assert "judged sufficient" in describe_completion(a_report(a_sentence("It rose.", ("E1", "Sales rose"))), ENGLISH)


def test_the_check_of_a_draft_says_what_the_text_says() -> None:
    (problem,) = check(a_sentence("The fleet has 13 ships.", ("E1", "The whole fleet has thirteen ships"))).problems
    assert problem.id == "s1"
    assert problem.problems[0].evidence == "E1"
    assert "The fleet has twelve ships" in problem.problems[0].excerpt


def test_the_check_of_a_short_answer_says_what_the_text_says() -> None:
    wrong = a_draft(answer="The fleet has 13 ships.").model_copy(
        update={"answer_citations": (DraftCitation(evidence="E1", quote="The whole fleet has thirteen ships"),)}
    )
    result = check_draft(wrong, PASSAGES, read_text, ClaimContext())
    assert [one.id for one in result.evidence] == ["E1"]
    assert "The fleet has twelve ships" in result.problems[0].problems[0].excerpt


def test_the_header_of_a_table_does_not_make_a_report_sufficient() -> None:
    header = DraftSentence(text="| Ferry | Cars |", layout=Layout.HEADER)
    assert "judged sufficient" not in describe_completion(a_report(header, a_sentence("Nothing was found.")), ENGLISH)


def test_the_check_of_a_draft_names_the_passage_where_the_words_stand() -> None:
    (problem,) = check(a_sentence("It sank.", ("E9", "sank the Heron"))).problems
    assert problem.problems[0].message == "E9 was not retrieved in this run. The words stand in E2."


def test_the_check_shows_where_an_unquoted_value_stands() -> None:
    (problem,) = check(a_sentence("Sales rose by 3.5 % in 2019.", ("E1", "Sales rose"))).problems
    assert [p.evidence for p in problem.problems] == ["E1", "E1"]
    assert all("3.5\\%" in p.excerpt for p in problem.problems)


def test_a_sentence_without_a_citation_is_a_problem_only_if_it_states_a_number() -> None:
    sentences = (a_sentence("This is a link."), a_sentence("It has 42 ships."))
    assert [one.problems[0].message for one in check(*sentences).problems] == ["It states 42 and cites nothing."]


def test_a_draft_without_faults_has_no_problems() -> None:
    result = check(a_sentence("The fleet has 12 ships.", ("E1", "The fleet has twelve ships.")))
    assert (result.problems, result.evidence) == ((), ())


def test_words_that_are_not_similar_are_not_shown() -> None:
    assert find_closest_words("nothing of this kind", FIRST) == ""
    assert find_closest_words("", FIRST) == ""


def test_the_header_of_a_table_is_no_problem() -> None:
    header = DraftSentence(text="| Measure | Q4 2022 | Q1 2023 |", layout=Layout.HEADER)
    assert check(header).problems == ()
    assert check(header.model_copy(update={"layout": Layout.ROW})).problems != ()


@pytest.mark.parametrize(
    ("conclusion", "message"),
    [
        ("In my view 3.5 % in 2019 is a lot for 12 ships.", ""),
        ("That is 7.5 % in all, and nothing is known of 2031.", ""),
        ("That is 7.6 % in all.", "It states 7.6 % and cites nothing."),
        ("That was in May 2019.", "It states May 2019 and cites nothing."),
    ],
)
def test_a_conclusion_repeats_numbers_of_quotes_calculations_and_the_question(conclusion: str, message: str) -> None:
    draft = a_draft(a_sentence("It is so.", ("E1", FIRST)), a_sentence(conclusion))
    context = ClaimContext("What happened until 2031?", ("7.5",))
    problems = check_draft(draft, PASSAGES, read_text, context).problems
    assert [one.problems[0].message for one in problems] == ([message] if message else [])


def test_a_passage_that_is_cited_without_a_quote_states_no_number_for_a_conclusion() -> None:
    problems = check(a_sentence("It is so.", ("E1", "")), a_sentence("It was in 2019.")).problems
    assert [one.problems[0].message for one in problems][1:] == ["It states 2019 and cites nothing."]


def test_a_short_answer_is_supported_by_quotes_of_passages_that_it_does_not_name() -> None:
    sentences = (a_sentence("It rose.", ("E1", FIRST)), a_sentence("It sank.", ("E2", "A storm on 12 May 2020")))
    report = a_report(*sentences, answer="Sales rose by 3.5 % until 12 May 2020 [E1].")
    assert report.answer is not None
    assert report.answer.is_supported
    wrong = a_report(*sentences, answer="Sales rose by 3.5 % until 13 May 2020 [E1].").answer
    assert wrong is not None
    assert wrong.unsupported_values == ("13 May 2020",)


@pytest.mark.parametrize("dotted", ["127.0.0.1", "0.0.0.0/0", "22.11.0"])
def test_a_number_with_several_dots_stands_in_a_quote_as_it_is_written(dotted: str) -> None:
    sentence = f"It accepts {dotted} and nothing else."
    assert find_unsupported_values(sentence, ClaimSupport((f"it accepts v{dotted}.",))) == ()
    assert find_unsupported_values(sentence, ClaimSupport((f"it accepts 1{dotted} or {dotted}.7",))) == (dotted,)
    assert check(a_sentence(sentence)).problems == ()


def test_a_date_with_dots_is_no_number_with_several_dots() -> None:
    assert find_unsupported_values("It was signed on 12.05.2020.", ClaimSupport(("signed on 12 May 2020",))) == ()


@pytest.mark.parametrize(
    ("quote", "located"),
    [
        ("the old fleet sank", "the old\n> fleet sank"),
        ("the old\n> fleet sank", "the old\n> fleet sank"),
        ("the old > fleet sank", "the old\n> fleet sank"),
        ("Then the old", "Then the old"),
        ("sank in a northwester", "sank in a north-\n> > wester"),
        ("wester for 5 days", None),
        ("for more than 5 days", None),
    ],
)
def test_a_quote_is_found_over_the_lines_of_a_blockquote(quote: str, located: str | None) -> None:
    text = "> Then the old\n> fleet sank in a north-\n> > wester for > 5 days"
    position = locate_quote(quote, text)
    assert (None if position is None else text[slice(*position)]) == located


def test_a_comparison_is_no_mark_of_a_blockquote() -> None:
    assert locate_quote("it has 5 ships", "it has > 5 ships") is None
    assert locate_quote("it has > 5 ships", "it has 5 ships") is None
    assert locate_quote("the well- 5 deep", "the well-\n>5 deep") == (0, 17)


TABLE = "Sales of cars | 4,224 | 12%\n(amounts in millions)"


def a_table_report(
    text: str, *quotes: str, title: str = "", caption_source: UUID = SOURCE
) -> tuple[Sentence, tuple[ProblemSentence, ...]]:
    """Return the sentence as the report has it, and the problems of the draft, in which a conclusion repeats it."""
    table = Evidence("E1", SourceSpan(TEXT_ID, 0, len(TABLE)), TABLE, SOURCE, title)
    notes = Evidence("E2", SourceSpan(TEXT_ID, 0, len(TABLE)), TABLE, caption_source, "")
    sentence = a_sentence(text, *((f"E{n}", quote) for n, quote in enumerate(quotes, 1)))
    draft, passages = a_draft(sentence, a_sentence(text)), {"E1": table, "E2": notes}
    report = verify_citations(draft, passages, read_table, StopReason.ANSWERED)
    return report.sections[0].sentences[0], check_draft(draft, passages, read_table, ClaimContext()).problems


def read_table(span: SourceSpan) -> str:
    return TABLE[span.start : span.end]


@pytest.mark.parametrize(
    ("quotes", "title"), [(("4,224", "(amounts in millions)"), ""), (("4,224",), "Sales in millions of dollars")]
)
def test_the_caption_of_a_table_gives_the_scale_of_its_numbers(quotes: tuple[str, ...], title: str) -> None:
    sentence, problems = a_table_report("Sales were $4,224 million.", *quotes, title=title)
    assert sentence.is_supported
    assert problems == ()


@pytest.mark.parametrize(
    ("text", "quotes", "value", "caption_source"),
    [
        ("Sales were $4,224 million.", ("4,224",), "4,224 million", SOURCE),
        ("Sales were $4,224 million.", ("4,224", "(amounts in millions)"), "4,224 million", UUID(int=9)),
        ("Sales were 12 million.", ("12%", "(amounts in millions)"), "12 million", SOURCE),
    ],
)
def test_without_a_caption_of_the_same_source_a_number_has_no_scale(
    text: str, quotes: tuple[str, ...], value: str, caption_source: UUID
) -> None:
    sentence, problems = a_table_report(text, *quotes, caption_source=caption_source)
    assert sentence.unsupported_values == (value,)
    assert [one.id for one in problems] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("caption", "value"),
    [
        ("(Amounts in thousands, except per share)", 65_800_000),
        ("$ millions", 65_800_000_000),
        ("(in US$ millions)", 65_800_000_000),
        ("In EUR Billions", 65_800_000_000_000),
        ("one of the millions", None),
        ("5 million", None),
    ],
)
def test_a_caption_names_a_scale_in_the_plural_behind_in_or_a_currency(caption: str, value: int | None) -> None:
    assert read_table_values(("65,800", caption)) == (frozenset() if value is None else {Decimal(value)})


def test_the_excerpt_of_a_problem_is_a_text_of_the_named_passage() -> None:
    (problem,) = check(a_sentence("It sank on 12 May 2020.", ("E1", "The fleet"))).problems
    assert problem.problems == (
        DraftProblem(
            "12 May 2020 is in none of the words quoted, and no calculation of this run gives it.",
            values=("12 May 2020",),
        ),
    )
    (rejected,) = check(a_sentence("It sank.", ("E1", "A storm of 12 May sank the Heron"))).problems
    assert rejected.problems[0].excerpt == ""


def test_the_excerpt_shows_a_number_and_not_a_part_of_another() -> None:
    (problem,) = check(a_sentence("It has 20 ships.", ("E1", "The fleet"))).problems
    assert [one.excerpt for one in problem.problems] == [""]


@pytest.mark.parametrize("start", ["", "- ", "\u2022 ", "| ", "It is so. **"])
def test_an_abbreviation_behind_the_first_word_is_no_name(start: str) -> None:
    quotes = ("the server closes connections after the timeout",)
    sentence = f"{start}Idle HTTP connections are closed by the server after the timeout."
    assert find_unsupported_values(sentence, ClaimSupport(quotes)) == ()
    within = "The server closes all Idle HTTP connections after the timeout."
    assert find_unsupported_values(within, ClaimSupport(quotes)) == ("Idle HTTP",)


def test_names_in_the_heading_above_a_quote_and_in_the_title_are_stated() -> None:
    text = "# Ships\n\nThey are old.\n\n## Ada Lund\n\nthe ferry sank in the bay"
    passage = Evidence("E1", SourceSpan(TEXT_ID, 9, 23), text[9:23], SOURCE, "Jane Doe", "Mary Roe")
    sentence = a_sentence(
        "The ferry of Ada Lund and of Jane Doe sank in the bay of Mary Roe.", ("E1", "the ferry sank in the bay")
    )
    report = verify_citations(
        a_draft(sentence), {"E1": passage}, lambda span: text[span.start : span.end], StopReason.ANSWERED
    )
    assert report.sections[0].sentences[0].is_supported
