"""The words of a report's files: each language has all of them, and a file has those of the report's language."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from string import Formatter
from uuid import UUID

import pytest

from offing.core.citation_texts import REJECTION_TEXTS
from offing.core.follow_up import FollowUpKind, FollowUpOutcome, KindChooser
from offing.core.position_texts import POSITION_TEXTS
from offing.core.report import (
    ClaimCheck,
    ClaimJudgment,
    ClaimVerdict,
    Conclusion,
    Conflict,
    Report,
    Section,
    Sentence,
    TextPosition,
    VersionOrigin,
)
from offing.core.report_changes import ChangeKind, ReportChanges, SectionChange, SentenceChange
from offing.core.report_document import build_report_document
from offing.core.report_formats import render_html, render_markdown
from offing.core.report_image import ImageSelection
from offing.core.report_labels.chinese import CHINESE
from offing.core.report_labels.english import ENGLISH
from offing.core.report_labels.labels import Counted, ReportLabels
from offing.core.report_labels.languages import LABELS, find_labels
from offing.core.report_language import find_report_language
from offing.core.run import StopReason
from offing.core.run_texts import RUN_TEXTS
from tests.unit.report_files.sample_reports import MARCH, TEXTS, chinese_report, english_report

KEPT_WORDS = {"token", "API", "extractive"}
"""Words that a Chinese text has in Latin letters."""


def list_texts(labels: ReportLabels) -> Iterator[tuple[str, str]]:
    """The texts of a language with their names."""
    for field in fields(labels):
        yield from list_parts(field.name, getattr(labels, field.name))


def list_parts(name: str, value: str | Counted | tuple[str, ...] | Mapping[str, str]) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield name, value
        case Counted(one, other):
            yield from ((f"{name}.one", one), (f"{name}.other", other))
        case tuple():
            yield from ((f"{name}.{number}", text) for number, text in enumerate(value))
        case _:
            yield from ((f"{name}.{key}", text) for key, text in value.items())


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_every_language_has_every_label_with_the_same_placeholders(labels: ReportLabels) -> None:
    texts, english = dict(list_texts(labels)), dict(list_texts(ENGLISH))
    assert texts.keys() == english.keys()
    assert [name for name, text in texts.items() if not text] in ([], ["between_sentences"])
    assert {name: placeholders(text) for name, text in texts.items()} == {
        name: placeholders(text) for name, text in english.items()
    }


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_every_value_of_a_report_has_a_label(labels: ReportLabels) -> None:
    assert labels.stop_reasons.keys() == set(StopReason)
    assert labels.verdicts.keys() == set(ClaimVerdict)
    assert labels.follow_up_kinds.keys() == set(FollowUpKind) - {FollowUpKind.AUTO}
    assert labels.choosers.keys() == set(KindChooser)
    assert labels.section_changes.keys() == labels.sentence_changes.keys() == set(ChangeKind)
    assert labels.rejections.keys() == REJECTION_TEXTS.templates.keys()
    assert labels.positions.keys() == POSITION_TEXTS.templates.keys()
    assert {"author_extractive", "author_graph"} == labels.authors.keys() <= RUN_TEXTS.templates.keys()
    assert len(labels.months) == 12


def test_no_chinese_label_is_still_in_english() -> None:
    words = {
        name: set(re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", "", text))) - KEPT_WORDS
        for name, text in list_texts(CHINESE)
        if name != "language"
    }
    assert {name: latin for name, latin in words.items() if latin} == {}


@pytest.mark.parametrize(
    ("tag", "labels"),
    [
        *((tag, CHINESE) for tag in ("zh", "zh-CN", "zh-Hans", "ZH-hant-TW")),
        *((tag, ENGLISH) for tag in ("en", "en-GB", "de", "ar", "und", "zha", "")),
    ],
)
def test_the_labels_are_those_of_the_language_of_a_tag(tag: str, labels: ReportLabels) -> None:
    assert find_labels(tag) is labels


def test_the_requested_language_goes_before_the_script() -> None:
    assert find_report_language(chinese_report(), None) == "zh"
    assert find_report_language(chinese_report(), "en") == "en"
    assert find_report_language(english_report(), None) == "en"
    assert find_report_language(english_report(), "zh-CN") == "zh-CN"


def test_a_chinese_report_with_many_english_names_is_chinese() -> None:
    sentence = Sentence("s1", "与 PostgreSQL 相比, Elasticsearch 和 OpenSearch 的吞吐量更高。")
    section = Section("", (sentence,))
    report = replace(chinese_report(), title="PostgreSQL, OpenSearch", answer=None, sections=(section,))
    assert find_report_language(report, None) == "zh"


def a_full_chinese_report() -> Report:
    """A Chinese report that has each kind of label: it was checked, edited and follows another."""
    report = chinese_report()
    first, second, third = report.citations
    positions = (
        TextPosition("产量", 3, 0, 0),
        TextPosition("", 0, 0, 0, fraction=0.5),
        TextPosition("", 0, 0, 0, is_erased=True),
    )
    citations = tuple(replace(c, position=p) for c, p in zip((first, second, third), positions, strict=True))
    rejected = REJECTION_TEXTS.render("quote_not_found", evidence="E9", quote="价格")
    objection = ClaimJudgment(ClaimVerdict.CONTRADICTED, "数字不同", contradiction=2)
    sentences = (
        Sentence("s1", TEXTS["chinese"][0], (1,), judgment=ClaimJudgment(ClaimVerdict.SUPPORTED)),
        Sentence("s2", "水泵的寿命为十年。", (2,), judgment=objection),
        Sentence("s3", "价格上涨了。", rejected=(rejected,)),
        Sentence("s4", "产量为 12 台。", (1,), unsupported_values=("12", "13"), is_edited=True),
        Sentence("s5", "因此市场在增长。", conclusion=Conclusion(("s1",), (1,))),
        Sentence("s6", "有人说过。", passages=(3,)),
    )
    changes = ReportChanges(
        title_before="旧标题",
        answer=(SentenceChange(ChangeKind.CHANGED, "新", "旧"),),
        sections=(
            SectionChange(ChangeKind.ADDED, "新章", sentences=(SentenceChange(ChangeKind.ADDED, "新句"),)),
            SectionChange(
                ChangeKind.CHANGED,
                "",
                "旧章",
                (SentenceChange(ChangeKind.REMOVED, "旧句"), SentenceChange(ChangeKind.CHANGED, "同", "同")),
            ),
        ),
        kept_sections=2,
    )
    return replace(
        report,
        sections=(Section("产量", sentences),),
        citations=citations,
        written_by=RUN_TEXTS.render("author_extractive"),
        conflicts=(Conflict("寿命", (1, 2)),),
        check=ClaimCheck(5, 2, "核查模型", groups=2, failure="", unverified=1),
        edit=VersionOrigin("web_ui", 1, "改正"),
        follow_up=FollowUpOutcome(FollowUpKind.EDIT, KindChooser.RULES, UUID(int=1), 1, changes, ("手册",)),
    )


def list_latin_words(text: str) -> set[str]:
    """The Latin words of a file besides those of its addresses, file names, tags and numbers of sources."""
    plain = re.sub(r"<style>.*?</style>|<[^>]*>|https\\?://\S+|\S+\.(cn|pdf|png)\b|\bS\d\b|\bE9\b", " ", text)
    return set(re.findall(r"[A-Za-z]+", plain)) - KEPT_WORDS


def test_a_chinese_file_has_no_english_word() -> None:
    report = a_full_chinese_report()
    images = ImageSelection(left_out=("图.png",))
    assert list_latin_words(render_markdown(report, language="zh")) == set()
    page = render_html(report, images, language="zh").partition("<body>")[2]
    assert list_latin_words(page) == set()
    document = build_report_document(report, MARCH, "zh", images)
    printed = re.findall(r'"(?:text|title)":"([^"]*)"', document.model_dump_json())
    assert list_latin_words("\n".join(printed)) == set()


def test_the_same_report_has_all_headings_in_both_languages() -> None:
    report = a_full_chinese_report()
    for language, labels in LABELS.items():
        headings = (labels.limits, labels.changes, labels.conflicts, labels.sources, labels.claims)
        written = render_markdown(report, language=language)
        printed = build_report_document(report, MARCH, language).model_dump_json()
        page = render_html(report, language=language)
        for heading in headings:
            assert f"\n\n## {heading}\n\n" in written
            assert f'"text":"{heading}"' in printed
            assert f"<h2>{heading}</h2>" in page


def test_a_page_names_its_language() -> None:
    assert '<html lang="zh-CN">' in render_html(chinese_report(), language="zh-CN")
    assert '<html lang="en">' in render_html(chinese_report())
    assert '<html lang="&quot;&gt;">' in render_html(chinese_report(), language='">')


def test_a_reason_that_the_platform_did_not_write_stays_as_it_is() -> None:
    report = replace(chinese_report(), answer=Sentence("s0", "价格。", rejected=("because of the harbor",)))
    assert "没有来源 because of the harbor" in render_markdown(report, language="zh")
