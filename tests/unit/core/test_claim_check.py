"""What a checker says of the claims of a report: it can lower a verdict, and every word that it quotes is looked up."""

from dataclasses import replace
from uuid import UUID

import pytest

from offing.core.citation import ClaimContext, verify_citations
from offing.core.claim_check import OTHER_PASSAGES, DraftClaimCheck, DraftConflict, DraftJudgment, apply_claim_check
from offing.core.claim_passages import MAX_PASSAGE_CHARS, SURROUNDING_CHARS, ClaimPassage, list_claims, merge_passages
from offing.core.claim_table import analyze_claims, list_conflicts
from offing.core.report import (
    ClaimCheck,
    ClaimVerdict,
    Conflict,
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Report,
    ReportDraft,
)
from offing.core.report_formats import compute_report_score, render_html, render_markdown, report_to_json
from offing.core.run import StopReason
from offing.core.tool import SourceSpan
from offing.storage.reports import report_from_parts
from offing.storage.reports import report_to_json as report_to_stored

TOWER, GUIDE = UUID(int=1), UUID(int=2)
TOWER_TEXT = "John Smeaton built the third tower of granite. The work took until October 1759. It stood for 123 years."
GUIDE_TEXT = "Visitors read that the third tower was finished in 1764. Its lantern held twenty-four candles."
TEXTS = {TOWER: TOWER_TEXT, GUIDE: GUIDE_TEXT}
PASSAGES = {
    "E1": Evidence("E1", SourceSpan(TOWER, 0, len(TOWER_TEXT)), TOWER_TEXT, TOWER, "Eddystone"),
    "E2": Evidence("E2", SourceSpan(GUIDE, 0, len(GUIDE_TEXT)), GUIDE_TEXT, GUIDE, "Guide"),
}
BUILT = ("Smeaton built the tower.", "E1", "John Smeaton built the third tower")
LANTERN = ("The lantern held candles.", "E2", "Its lantern held twenty-four candles.")


def read_text(span: SourceSpan) -> str:
    return TEXTS[span.text_id][span.start : span.end]


def a_draft(*sentences: tuple[str, str, str]) -> ReportDraft:
    listed = tuple(
        DraftSentence(text=text, citations=(DraftCitation(evidence=id, quote=quote),)) for text, id, quote in sentences
    )
    return ReportDraft(title="T", sections=(DraftSection(heading="H", sentences=listed),))


def a_judgment(verdict: ClaimVerdict, evidence: str = "E1", quote: str = "", sentence: str = "s1") -> DraftJudgment:
    return DraftJudgment(sentence=sentence, verdict=verdict, evidence=evidence, reason="so it reads", quote=quote)


def a_conflict(first: str, second: str, *, ids: tuple[str, str] = ("E1", "E2")) -> DraftConflict:
    one, other = (DraftCitation(evidence=id, quote=quote) for id, quote in zip(ids, (first, second), strict=True))
    return DraftConflict(matter="year of completion", first=one, second=other)


def checked(
    *sentences: tuple[str, str, str],
    judgments: tuple[DraftJudgment, ...] = (),
    conflicts: tuple[DraftConflict, ...] = (),
    failure: str = "",
) -> Report:
    draft = a_draft(*sentences)
    report = verify_citations(draft, PASSAGES, read_text, StopReason.ANSWERED)
    replies = (7,) if judgments or conflicts else ()
    check = DraftClaimCheck(
        claims=len(sentences), judgments=judgments, conflicts=conflicts, replies=replies, failure=failure
    )
    return apply_claim_check(report, draft, check, PASSAGES, read_text, "checking-model" if replies else "")


VERDICTS: dict[str, tuple[tuple[str, str, str], ClaimVerdict, ClaimVerdict]] = {
    "a supported claim stays supported": (BUILT, ClaimVerdict.SUPPORTED, ClaimVerdict.SUPPORTED),
    "a checker lowers to partly": (BUILT, ClaimVerdict.PARTLY, ClaimVerdict.PARTLY),
    "a checker lowers to not found": (BUILT, ClaimVerdict.NOT_FOUND, ClaimVerdict.NOT_FOUND),
    "an invented number cannot be raised": (
        ("It stood for 55 years.", "E1", "It stood for 123 years."),
        ClaimVerdict.SUPPORTED,
        ClaimVerdict.PARTLY,
    ),
    "an invented quote cannot be raised": (
        ("The tower was red.", "E1", "painted red"),
        ClaimVerdict.SUPPORTED,
        ClaimVerdict.NOT_FOUND,
    ),
    "a passage without quoted words cannot be raised": (
        ("The tower was of granite.", "E1", ""),
        ClaimVerdict.SUPPORTED,
        ClaimVerdict.NOT_FOUND,
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_the_worse_verdict_of_rules_and_checker_holds(case: str) -> None:
    claim, checker_verdict, verdict = VERDICTS[case]
    (sentence,) = checked(claim, judgments=(a_judgment(checker_verdict),)).sentences()
    assert (sentence.verdict, sentence.is_supported) == (verdict, verdict is ClaimVerdict.SUPPORTED)


def test_a_contradiction_is_shown_with_the_words_that_contradict() -> None:
    quote = "It stood for 123 years."
    claim = ("Smeaton built it, and it stood briefly.", "E1", "John Smeaton built the third tower")
    report = checked(claim, judgments=(a_judgment(ClaimVerdict.CONTRADICTED, quote=quote),))
    (sentence,) = report.sentences()
    assert sentence.judgment is not None
    assert (sentence.verdict, sentence.judgment.contradiction) == (ClaimVerdict.CONTRADICTED, 2)
    assert report.citations[1].quote == quote
    assert "checker: contradicted by \\[2\\]: so it reads" in render_markdown(report)
    assert compute_report_score(report).model_dump() == {"sentences": 1, "supported": 0, "citations": 1}


@pytest.mark.parametrize("quote", ["", "It was painted red all over.", "1759"])
def test_a_contradiction_without_words_of_the_passage_counts_as_partly(quote: str) -> None:
    report = checked(BUILT, judgments=(a_judgment(ClaimVerdict.CONTRADICTED, quote=quote),))
    assert report.sentences()[0].verdict is ClaimVerdict.PARTLY
    assert report.check is not None
    assert report.check.unverified == 1
    assert "in words that no passage contains: 1." in analyze_claims(report).judged_by


def test_a_judgment_of_a_passage_that_the_sentence_does_not_cite_is_not_used() -> None:
    other, unknown = a_judgment(ClaimVerdict.NOT_FOUND, "E2"), a_judgment(ClaimVerdict.NOT_FOUND, sentence="s9")
    report = checked(BUILT, judgments=(other, unknown))
    assert report.sentences()[0].judgment is None
    assert report.check == ClaimCheck(1, 0, "checking-model", groups=1, failure=OTHER_PASSAGES)


def test_a_judgment_without_an_id_is_about_the_only_passage() -> None:
    (sentence,) = checked(BUILT, judgments=(a_judgment(ClaimVerdict.PARTLY, ""),)).sentences()
    assert sentence.judgment is not None
    assert sentence.judgment.passage == 1


def test_a_conflict_is_listed_with_both_quotes_and_its_matter() -> None:
    conflict = a_conflict("The work took until October 1759.", "the third tower was finished in 1764")
    report = checked(BUILT, LANTERN, conflicts=(conflict,))
    assert report.conflicts == (Conflict("year of completion", (3, 4)),)
    assert [c.quote for c in report.citations[2:]] == [conflict.first.quote, conflict.second.quote]
    for rendered in (render_markdown(report), render_html(report)):
        assert "Conflicts between sources" in rendered
        assert "year of completion" in rendered
        assert "the third tower was finished in 1764" in rendered
    assert report_to_json(report)["conflicts"][0]["found_by"] == "checker"


def test_a_conflict_in_invented_words_or_within_one_source_is_not_listed() -> None:
    invented = a_conflict("The work took until October 1759.", "the tower was finished in 1790")
    same = a_conflict("The work took until October 1759.", "It stood for 123 years.", ids=("E1", "E1"))
    report = checked(BUILT, LANTERN, conflicts=(invented, same))
    assert (report.conflicts, report.check and report.check.unverified) == ((), 1)


def test_a_failed_checker_leaves_the_verdicts_of_the_rules_and_says_so() -> None:
    report = checked(BUILT, LANTERN, failure="The provider does not answer")
    assert [s.verdict for s in report.sentences()] == [ClaimVerdict.SUPPORTED] * 2
    assert analyze_claims(report).judged_by == (
        "The verdicts are given by rules alone. The checker judged no sentence: The provider does not answer."
    )
    assert "only by rules" in analyze_claims(report).conflict_search
    assert "## Claims" not in render_markdown(report)


def test_the_exports_say_who_judged_what() -> None:
    report = checked(BUILT, LANTERN, judgments=(a_judgment(ClaimVerdict.PARTLY),), failure="It left out 1.")
    markdown = render_markdown(report)
    assert "by checking-model, which judged 1 of 2 sentences. It did not judge the others: It left out 1." in markdown
    assert "| partly supported | supported | partly supported | \\[1\\] | Smeaton built the tower." in markdown
    assert "| supported | supported | not judged | \\[2\\] |" in markdown
    assert '<td dir="auto">not judged</td>' in render_html(report)
    assert report_to_json(report)["check"]["checked_by"] == "checking-model"


def test_a_report_without_a_checker_says_that_rules_judged_it() -> None:
    report = verify_citations(a_draft(BUILT), PASSAGES, read_text, StopReason.ANSWERED)
    assert analyze_claims(report).judged_by.startswith("The verdicts are given by rules")
    assert "fewer than two sources" in analyze_claims(report).conflict_search
    assert not {"check", "conflicts"} & report_to_stored(report).keys()


def test_a_checked_report_is_stored_and_read_back_unchanged() -> None:
    quote = "It stood for 123 years."
    conflict = a_conflict("The work took until October 1759.", "the third tower was finished in 1764")
    judgments = (a_judgment(ClaimVerdict.CONTRADICTED, quote=quote), a_judgment(ClaimVerdict.PARTLY, "E2", "", "s2"))
    report = checked(BUILT, LANTERN, judgments=judgments, conflicts=(conflict,))
    read = report_from_parts(report.status, report.stop_reason, report_to_stored(report), report.citations)
    assert read == report


def test_the_checker_reads_the_quote_with_its_surroundings_and_not_the_whole_source() -> None:
    long = "Before it stood a hut. " * 200 + TOWER_TEXT + " Afterwards came others." * 200
    start = long.index(TOWER_TEXT)
    passage = replace(PASSAGES["E1"], span=SourceSpan(TOWER, start, start + len(TOWER_TEXT)))
    (claim,) = list_claims(a_draft(BUILT), {"E1": passage}, lambda span: long[span.start : span.end], ClaimContext())
    (passage_text,) = claim.passages
    assert BUILT[2] in passage_text.text
    assert long[passage_text.start : passage_text.end] == passage_text.text
    assert len(BUILT[2]) < len(passage_text.text) <= len(BUILT[2]) + 2 * SURROUNDING_CHARS


def test_a_sentence_whose_quote_was_not_found_is_judged_by_the_closest_part_of_its_passage() -> None:
    long = "Before it stood a hut. " * 300 + TOWER_TEXT
    passage = replace(PASSAGES["E1"], span=SourceSpan(TOWER, 0, len(long)), text=long)
    draft = a_draft(("John Smeaton built the third tower of marble.", "E1", "of fine marble"))
    (claim,) = list_claims(draft, {"E1": passage}, lambda span: long[span.start : span.end], ClaimContext())
    assert "tower of granite" in claim.passages[0].text
    assert len(claim.passages[0].text) <= MAX_PASSAGE_CHARS + 2 * SURROUNDING_CHARS


def test_a_sentence_that_cites_nothing_known_is_not_given_to_the_checker() -> None:
    draft = a_draft(("It is invented.", "E9", "words"), BUILT)
    assert [c.id for c in list_claims(draft, PASSAGES, read_text, ClaimContext())] == ["s2"]


def test_ranges_of_a_passage_that_overlap_are_shown_once() -> None:
    first, second = ClaimPassage("E1", "T", "", 0, TOWER_TEXT[:40]), ClaimPassage("E1", "T", "", 30, TOWER_TEXT[30:70])
    apart = ClaimPassage("E1", "T", "", 80, TOWER_TEXT[80:])
    assert [p.text for p in merge_passages((apart, second, first))] == [TOWER_TEXT[:70], TOWER_TEXT[80:]]


def test_conflicts_that_rules_find_are_listed_after_those_of_the_checker() -> None:
    texts = {
        TOWER: "The lantern of the Eddystone tower held 24 tallow candles.",
        GUIDE: "The lantern of the Eddystone tower held 60 tallow candles.",
    }
    evidence = {
        id: replace(PASSAGES[id], span=SourceSpan(key, 0, len(texts[key])), text=texts[key])
        for id, key in (("E1", TOWER), ("E2", GUIDE))
    }
    draft = a_draft(("It held 24.", "E1", texts[TOWER]), ("It held 60.", "E2", texts[GUIDE]))
    report = verify_citations(
        draft, evidence, lambda span: texts[span.text_id][span.start : span.end], StopReason.ANSWERED
    )
    assert list_conflicts(report) == (Conflict("", (1, 2)),)
    assert list_conflicts(replace(report, conflicts=(Conflict("candles", (1, 2)),))) == (Conflict("candles", (1, 2)),)
    assert "None was found" not in analyze_claims(report).conflict_search
    assert "(found by rules)" in render_markdown(report)


def test_a_complete_report_with_limits_does_not_claim_that_all_was_found() -> None:
    draft = a_draft(BUILT).model_copy(update={"limits": "Not found: who kept the light."})
    report = verify_citations(draft, PASSAGES, read_text, StopReason.ANSWERED)
    assert "except for what the limits below state" in render_markdown(report)
    assert "except" not in render_markdown(replace(report, limits=""))
