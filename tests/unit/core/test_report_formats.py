"""Reports as files: complete, and with nothing of their content live."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from offing.core.report import Citation, Report, ReportStatus, Section, Sentence, SourceDetails, TextPosition
from offing.core.report_formats import (
    MAX_QUOTE_CHARS,
    compute_report_score,
    render_html,
    render_markdown,
    report_to_json,
)
from offing.core.run import StopReason
from offing.core.tool import SourceSpan

TEXT_ID, SOURCE = UUID(int=7), UUID(int=8)

HOSTILE = [
    "![x](https://evil.example/p.png)",
    "[click](javascript:alert(1))",
    "[click][1]\n\n[1]: https://evil.example",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</title></style><svg/onload=alert(1)>",
    "<https://evil.example>",
    "https://evil.example/path",
    "www.evil.example",
    "someone@evil.example",
    "# heading",
    "> quote",
    "- item",
    "+ item",
    "1. item",
    "1) item",
    "    indented code",
    "```\ncode\n```",
    "~~~\ncode\n~~~",
    "`code`",
    "*em* **strong** __strong__ _em_",
    "| a | b |\n|---|---|\n| c | d |",
    "a\n===",
    "a\n---",
    "***",
    "&lt;script&gt; &#60;script&#62; &#x3c;",
    "\\<script\\>",
    "\\",
    "[^1]: note",
    "$x$ $$y$$",
    ":::warning\nx\n:::",
    "<!-- comment -->",
    "line one  \nline two\\\nline three",
    "\u202etxt.exe\u202c \u2066x\u2069",
    "bell\x07 null\x00 escape\x1b[31m",
    "half \ud800 pair",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
]


def report(text: str = "Plain words.", **more: object) -> Report:
    """A report that has this text in every place where content can stand."""
    position, details = TextPosition(f"In {text}"), SourceDetails(f"files/{text}", author=text)
    citation = Citation(1, SourceSpan(TEXT_ID, 10, 10 + len(text)), text, SOURCE, text, position, details)
    sentences = (Sentence("s2", text, (1,)), Sentence("s3", text, (), (text,)), Sentence("s4", text))
    values: dict[str, object] = {
        "title": text,
        "status": ReportStatus.PARTIAL,
        "stop_reason": StopReason.TURN_LIMIT.value,
        "answer": Sentence("s1", text, (1,)),
        "sections": (Section(text, sentences),),
        "citations": (citation,),
        "limits": text,
        "written_by": text,
    }
    return Report(**{**values, **more})  # type: ignore[arg-type]


def markdown_tokens(text: str) -> set[str]:
    """Kinds of everything that a lenient reader makes of it: HTML on, tables, strike-through."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return {t.type for token in parser.parse(text) for t in (token, *(token.children or ()))}


EXPECTED = {
    *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text", "text_special"),
    *("em_open", "em_close", "strong_open", "strong_close", "softbreak"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    *("blockquote_open", "blockquote_close", "code_inline"),
}


def test_markdown_has_the_beginning_of_a_quote_that_is_a_whole_passage() -> None:
    quote = "words " * MAX_QUOTE_CHARS
    source = report().citations[0]
    long = report(citations=(Citation(1, source.span, quote, source.source_id, source.title),))
    line = next(line for line in render_markdown(long).splitlines() if line.startswith("  > words"))
    assert line.endswith("words \u2026")
    assert len(line) <= MAX_QUOTE_CHARS + 6
    assert quote.strip() in render_html(long)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_of_content_is_text(text: str) -> None:
    tokens = markdown_tokens(render_markdown(report(text)))
    assert tokens <= EXPECTED


@pytest.mark.parametrize("text", HOSTILE)
def test_content_makes_no_more_blocks_than_plain_words_do(text: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True})
    shape = [t.type for t in parser.parse(render_markdown(report(text)))]
    assert shape == [t.type for t in parser.parse(render_markdown(report()))]


ADDRESSES = [
    "https://evil.example/path",
    "www.evil.example",
    "HTTP://evil.example",
    "ftp://evil.example",
    "a@evil.example",
]


@pytest.mark.parametrize("text", ADDRESSES)
def test_an_address_in_content_stands_escaped_so_that_readers_who_link_bare_addresses_do_not(text: str) -> None:
    assert text not in render_markdown(report(text))


@pytest.mark.parametrize("inside", ["<b>", "[a](https://evil.example)", "*a*", "a_b", "\\", "__proto__", "$x$"])
def test_code_stays_code_and_nothing_acts_in_it(inside: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(render_markdown(report(f"Set `{inside}` to *two*.")))
    children = [child for token in tokens for child in token.children or ()]
    assert {child.content for child in children if child.type == "code_inline"} == {inside}
    assert "link_open" not in {child.type for child in children}
    assert "html_inline" not in {child.type for child in children}


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(text: str) -> Page:
    parsed = Page()
    parsed.feed(render_html(report(text)))
    return parsed


@pytest.mark.parametrize("text", HOSTILE)
def test_content_adds_no_tag_and_no_attribute_to_the_page(text: str) -> None:
    plain, hostile = page("Plain words."), page(text)
    assert (hostile.tags, hostile.attributes) == (plain.tags, plain.attributes)
    assert set(hostile.links) == {"#c1"}
    assert "script" not in hostile.tags


@given(st.text(max_size=60))
def test_any_text_keeps_the_page_in_shape(text: str) -> None:
    assert page(f"w{text}").tags == page("Plain words.").tags


@given(st.text(alphabet=st.sampled_from("ab \n\t*_`[]()<>#-+=!|\\1.&:~@\"'/"), max_size=40))
def test_any_marks_keep_the_markdown_in_shape(text: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True})
    words = f"w{text}w"
    shape = [t.type for t in parser.parse(render_markdown(report(words)))]
    assert shape == [t.type for t in parser.parse(render_markdown(report()))]


@given(st.text(alphabet=st.sampled_from("ab *_`[]()<>#-+=!|\\1.&:~@\"'/é😀"), min_size=1, max_size=40))
def test_what_a_reader_sees_is_what_was_written(text: str) -> None:
    words = " ".join(f"w {text} w".split())
    rendered = MarkdownIt("commonmark", {"html": True}).render(render_markdown(report(words)))
    parsed = Page()
    parsed.feed(rendered)
    assert re.sub(r"(?<!`)`([^`\s]|[^`\s][^`]*[^`\s])`(?!`)", r"\1", words) in "".join(parsed.texts)


def test_an_id_cannot_leave_its_attribute() -> None:
    parsed = Page()
    parsed.feed(render_html(report(answer=Sentence('s1" onclick="alert(1)', "Words.", (1,)))))
    assert "onclick" not in parsed.attributes


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    text = render_html(report())
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_status_reason_limits_and_missing_support_are_said() -> None:
    for form in (render_markdown, render_html):
        text = form(report(limits="No table was read."))
        assert "Partial report. The limit on turns was reached." in text
        assert "No table was read." in text
        assert text.count("(no source") == 2


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_reason_to_stop_has_a_sentence(reason: StopReason) -> None:
    assert "The run ended:" not in render_markdown(report(stop_reason=reason.value))


def test_a_source_is_listed_once_with_the_positions_and_quotes_of_its_citations() -> None:
    details = SourceDetails("docs/guide.md", retrieved_at=datetime(2026, 3, 1, tzinfo=UTC))
    first = Citation(1, SourceSpan(TEXT_ID, 10, 14), "word", SOURCE, "Guide", TextPosition("Use", 0, 4, 4), details)
    other = Citation(2, SourceSpan(TEXT_ID, 10, 14), "else", UUID(int=9), "Notes")
    third = Citation(3, SourceSpan(TEXT_ID, 90, 94), "more", SOURCE, "Guide", TextPosition("", 0, 9, 12), details)
    created = report(citations=(first, other, third))
    assert (
        render_markdown(created)
        .partition("## Sources\n\n")[2]
        .startswith(
            "**S1. Guide** \u00b7 docs/guide.md \u00b7 added to the library 1 March 2026\n\n"
            "- [1] section \u201cUse\u201d, line 4\n  > word\n- [3] lines 9 to 12\n  > more\n\n"
            "**S2. Notes**\n\n- [2]\n  > else\n\n"
        )
    )
    parsed = Page()
    parsed.feed(render_html(created))
    assert [parsed.tags.count(tag) for tag in ("h3", "blockquote")] == [2, 3]


@pytest.mark.parametrize("form", [render_markdown, render_html])
def test_readers_see_no_id_of_the_database(form: Callable[[Report], str]) -> None:
    assert str(SOURCE) not in form(report())
    assert str(TEXT_ID) not in form(report())


def test_an_empty_report_is_still_a_report() -> None:
    created = Report("Nothing", ReportStatus.PARTIAL, StopReason.NOTHING_FOUND.value, None, (), ())
    assert "No source was found" in render_markdown(created)
    assert "No source was found" in render_html(created)
    assert report_to_json(created)["score"] == {"sentences": 0, "supported": 0, "citations": 0}


def test_json_holds_everything_exactly() -> None:
    text = "exact  \n \u202equote\u202c 😀"
    created = report_to_json(report(text))
    assert json.loads(json.dumps(created)) == created
    assert created["citations"][0] == {
        "number": 1,
        "source": "S1",
        "position": f"section \u201cIn {text}\u201d",
        "source_id": str(SOURCE),
        "text_id": str(TEXT_ID),
        "title": text,
        "start": 10,
        "end": 10 + len(text),
        "quote": text,
    }
    assert [s["supported"] for s in created["sections"][0]["sentences"]] == [True, False, False]
    assert created["sections"][0]["sentences"][1]["rejected"] == [text]


def test_the_score_counts_supported_sentences() -> None:
    assert compute_report_score(report()).model_dump() == {"sentences": 4, "supported": 2, "citations": 1}
