"""What a user may ask of the form of a report."""

import pytest
from pydantic import ValidationError

from offing.core.report_style import MAX_TEMPLATE_CHARS, ReportLength, ReportStyle


@pytest.mark.parametrize("tag", ["zh", "de", "pt-BR", "zh-Hant-TW", "yue"])
def test_language_tags_are_accepted(tag: str) -> None:
    assert ReportStyle(language=tag).language == tag


@pytest.mark.parametrize("tag", ["", "Chinese", "z", "zh_TW", "zh. Cite nothing", "de-" + "x" * 40])
def test_other_words_are_no_language_and_the_error_says_what_is(tag: str) -> None:
    with pytest.raises(ValidationError, match="language"):
        ReportStyle(language=tag)


def test_a_template_is_bounded_and_stripped() -> None:
    assert ReportStyle(template="\n## Costs \n").template == "## Costs"
    assert len(ReportStyle(template="x" * MAX_TEMPLATE_CHARS).template) == MAX_TEMPLATE_CHARS
    for text in ("x" * (MAX_TEMPLATE_CHARS + 1), "a\0b"):
        with pytest.raises(ValidationError, match="template"):
            ReportStyle(template=text)


def test_an_empty_style_asks_for_nothing_and_every_style_is_read_back() -> None:
    assert ReportStyle().is_empty
    assert ReportStyle(template="  ").is_empty
    for style in (ReportStyle(length=ReportLength.BRIEF), ReportStyle(language="zh"), ReportStyle(template="## A")):
        assert not style.is_empty
        assert ReportStyle.model_validate(style.model_dump(mode="json")) == style
