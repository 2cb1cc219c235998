"""Every accepted citation is the stored text of its span; everything else is rejected with a reason."""

import unicodedata
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from offing.core.citation import verify_citations
from offing.core.quote_matching import locate_quote
from offing.core.report import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Report,
    ReportDraft,
    ReportStatus,
)
from offing.core.run import StopReason
from offing.core.tool import SourceSpan

TEXT_ID = UUID(int=7)
SOURCE = UUID(int=8)


def evidence(text: str, id: str = "E1", start: int = 100, text_id: UUID = TEXT_ID) -> Evidence:
    return Evidence(id, SourceSpan(text_id, start, start + len(text)), text, SOURCE, "Title")


def sentence(text: str, *citations: tuple[str, str]) -> DraftSentence:
    return DraftSentence(text=text, citations=tuple(DraftCitation(evidence=e, quote=q) for e, q in citations))


def checked(*sentences: DraftSentence, known: tuple[Evidence, ...], answer: str = "") -> Report:
    draft = ReportDraft(title="T", answer=answer, sections=(DraftSection(heading="H", sentences=sentences),))
    texts = {e.span: e.text for e in known}
    return verify_citations(draft, {e.id: e for e in known}, lambda span: texts.get(span, ""), StopReason.ANSWERED)


def stored(report: Report, known: tuple[Evidence, ...]) -> None:
    """Every citation of the report is exactly the stored text of its span."""
    for citation in report.citations:
        home = next(e for e in known if e.span.contains(citation.span))
        assert citation.quote == home.text[citation.span.start - home.span.start : citation.span.end - home.span.start]


def quoted(text: str, quote: str) -> str | None:
    position = locate_quote(quote, text)
    return None if position is None else text[position[0] : position[1]]


def test_a_quote_found_exactly_is_cited_with_its_span() -> None:
    known = (evidence("One two three. Four five six."),)
    report = checked(sentence("They say four.", ("E1", "Four five six.")), known=known)
    (citation,) = report.citations
    assert (citation.number, citation.span, citation.quote) == (1, SourceSpan(TEXT_ID, 115, 129), "Four five six.")
    assert report.sections[0].sentences[0].is_supported
    assert report.status is ReportStatus.COMPLETE


def test_a_citation_without_a_quote_names_the_passage_and_supports_nothing() -> None:
    known = (evidence("One two three."),)
    report = checked(sentence("All of it.", ("E1", "")), known=known)
    (one,) = report.sections[0].sentences
    assert (one.citations, one.passages, one.is_supported) == ((), (1,), False)
    assert report.citations[0].quote == "One two three."
    assert report.citations[0].span == known[0].span


def test_a_quote_that_is_not_there_is_rejected_and_the_sentence_stays_unsupported() -> None:
    report = checked(sentence("An invention.", ("E1", "seven eight")), known=(evidence("One two three."),))
    (one,) = report.sections[0].sentences
    assert (one.text, one.citations, one.is_supported) == ("An invention.", (), False)
    assert one.rejected == ("The quoted words are not in E1: “seven eight”",)
    assert report.citations == ()


def test_a_source_that_was_not_retrieved_cannot_be_cited() -> None:
    report = checked(sentence("From memory.", ("E9", "One")), known=(evidence("One two three."),))
    assert report.sections[0].sentences[0].rejected == ("E9 was not retrieved in this run.",)


def test_a_deleted_or_changed_text_supports_nothing() -> None:
    draft = ReportDraft(
        title="T", sections=(DraftSection(heading="H", sentences=(sentence("It says one.", ("E1", "One")),)),)
    )
    for text in ("", "One two three and more"):
        report = verify_citations(draft, {"E1": evidence("One two three.")}, lambda _, t=text: t, StopReason.ANSWERED)
        assert report.sections[0].sentences[0].rejected == ("The stored text of E1 is not available.",)


def test_what_counts_is_the_stored_text_and_not_the_evidence_as_it_was_shown() -> None:
    draft = ReportDraft(
        title="T", sections=(DraftSection(heading="H", sentences=(sentence("It says so.", ("E1", "two")),)),)
    )
    report = verify_citations(
        draft, {"E1": evidence("One two three.")}, lambda _: "One 2.. three.", StopReason.ANSWERED
    )
    assert not report.sections[0].sentences[0].is_supported


def test_numbers_follow_first_use_and_a_span_has_one_number() -> None:
    known = (evidence("One two."), evidence("Three four.", "E2", 500))
    report = checked(
        sentence("B.", ("E2", "Three four.")),
        sentence("A.", ("E1", "One two.")),
        sentence("B again.", ("E2", "Three four."), ("E1", "One two.")),
        known=known,
    )
    assert [s.citations for s in report.sections[0].sentences] == [(1,), (2,), (1, 2)]
    assert [c.number for c in report.citations] == [1, 2]


def test_sentences_are_numbered_from_the_answer_on() -> None:
    report = checked(sentence("A."), sentence("B."), known=(), answer="Short.")
    assert [s.id for s in report.sentences()] == ["s1", "s2", "s3"]


def test_markers_in_a_text_are_citations_and_do_not_stay_in_it() -> None:
    known = (evidence("One two. Three four."), evidence("Five six.", "E2", 500))
    report = checked(sentence("Body.", ("E1", "Three four.")), known=known, answer="Short [E1], and more [E2; E7].")
    assert report.answer is not None
    assert report.answer.text == "Short, and more."
    assert report.answer.rejected == ("E7 was not retrieved in this run.",)
    by_number = {c.number: c.quote for c in report.citations}
    assert [by_number[n] for n in report.answer.citations] == ["Three four."]
    assert [by_number[n] for n in report.answer.passages] == ["Five six."], "no sentence quotes E2"


LIGHTS = "The lens has rings of glass that gather the light. The tower was opened in 1759 by the harbor board."


@pytest.mark.parametrize(
    ("answer", "is_carried"),
    [
        ("The tower was opened by the board of the harbor [E1].", True),
        ("The lens has rings of glass that bend the light [E1].", False),
        ("Die Linse hat Ringe aus Glas, die das Licht sammeln [E1].", True),
    ],
)
def test_a_marker_takes_no_quote_that_speaks_of_something_else(answer: str, is_carried: bool) -> None:
    opened = "The tower was opened in 1759 by the harbor board."
    report = checked(sentence("It opened in 1759.", ("E1", opened)), known=(evidence(LIGHTS),), answer=answer)
    assert report.answer is not None
    assert bool(report.answer.citations) == report.answer.is_supported == is_carried
    assert bool(report.answer.passages) != is_carried


def test_partial_unless_answered() -> None:
    draft = ReportDraft(title="T", sections=())
    for reason in StopReason:
        status = verify_citations(draft, {}, lambda _: "", reason).status
        assert (status is ReportStatus.COMPLETE) == (reason is StopReason.ANSWERED)


@pytest.mark.parametrize(
    ("text", "quote", "result"),
    [
        ("It  was\n  raining.", "was raining.", "was\n  raining."),
        ("He said “no”.", 'said "no"', "said “no”"),
        ("It\u2019s fine", "It's fine", "It\u2019s fine"),
        ("a well\u2010known fact", "well-known fact", "well\u2010known fact"),
        ("the connec-\ntion pool", "connection pool", "connec-\ntion pool"),
        ("the connec\u00adtion pool", "connection pool", "connec\u00adtion pool"),
        ("pages 3\u201310 say", "pages 3-10", "pages 3\u201310"),
        ("wait… and see", "wait... and", "wait… and"),
        ("an e\ufb03cient way", "efficient way", "e\ufb03cient way"),
        ("non\u00a0breaking space", "non breaking", "non\u00a0breaking"),
        ("zero\u200bwidth", "zerowidth", "zero\u200bwidth"),
        (unicodedata.normalize("NFD", "Ein schöner Tag"), "schöner Tag", unicodedata.normalize("NFD", "schöner Tag")),
        ("Ein schöner Tag", unicodedata.normalize("NFD", "schöner Tag"), "schöner Tag"),
        ("\u202bאדם אמר\u202c שלום", "אדם אמר שלום", "אדם אמר\u202c שלום"),
        ("الثعلب البني يقفز", "البني", "البني"),
        ("a 😀 face 👩‍👩‍👧 family", "😀 face 👩‍👩‍👧 family", "😀 face 👩‍👩‍👧 family"),
        ("\U0001d518nicode \U0001d557ancy text", "\U0001d557ancy text", "\U0001d557ancy text"),
        ("これは接続を再利用する。", "接続を再利用", "接続を再利用"),
        ("part of a parting; the art of it", "art", "art"),
    ],
)
def test_a_quote_is_found_but_for_what_does_not_matter(text: str, quote: str, result: str) -> None:
    assert quoted(text, quote) == result


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("it costs 50 or 3.55", "5"),
        ("it costs 350", "50"),
        ("parting", "part"),
        ("It does not work", "It does work"),
        ("It does not work", "it does not work"),
        ("10² metres", "102 metres"),
        (unicodedata.normalize("NFD", "café au lait"), "cafe"),
        ("👩‍👩‍👧", "👩"),
        ("an e\ufb03cient way", "cient way"),
        ("anything", "..."),
        ("anything", "“”"),
        ("anything", "   "),
        ("", "anything"),
    ],
)
def test_half_a_word_a_half_character_or_other_words_are_no_quote(text: str, quote: str) -> None:
    assert locate_quote(quote, text) is None


WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(WORDS, st.data())
@example("e\u0301\u0327a", None)
def test_any_accepted_quote_is_the_stored_text(text: str, data: st.DataObject | None) -> None:
    quote = (
        data.draw(st.one_of(WORDS, st.sampled_from([text[i:j] for i in range(4) for j in range(4, 60)])))
        if data
        else "e"
    )
    known = (evidence(text),)
    report = checked(sentence("S.", ("E1", quote)), known=known)
    stored(report, known)
    (one,) = report.sections[0].sentences if report.sections else (None,)
    assert one is not None
    assert [bool(one.citations), bool(one.rejected), bool(one.passages)].count(True) == 1


@given(
    st.lists(st.sampled_from(["alpha", "béta", "γάμμα", "דלת", "五", "😀", "re-use", "3.5"]), min_size=1, max_size=12),
    st.data(),
)
def test_a_run_of_whole_words_is_always_found_whatever_the_spacing(words: list[str], data: st.DataObject) -> None:
    gaps = data.draw(
        st.lists(st.sampled_from([" ", "\n", "\t ", "\u00a0", " \n  "]), min_size=len(words), max_size=len(words))
    )
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    quote = " ".join(words[start:end])
    if not any(c.isalnum() for c in quote):
        return
    result = quoted(text, quote)
    assert result is not None
    assert result.split() == words[start:end]


@given(st.text(max_size=80), st.text(min_size=1, max_size=40))
def test_a_quote_is_never_cut_within_a_character_and_its_marks(text: str, quote: str) -> None:
    position = locate_quote(quote, text)
    if position is not None:
        start, end = position
        assert start < end
        assert end == len(text) or unicodedata.category(text[end])[0] != "M"


def test_a_long_text_is_searched_in_no_time() -> None:
    text = "word " * 200_000 + "needle-\nwork at the end"
    assert quoted(text, "needlework at the end") == "needle-\nwork at the end"
