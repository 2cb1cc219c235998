"""Codes beside the reasons why citations were rejected."""

from offing.api.coded_texts import serialize_rejection_text
from offing.core.citation_texts import REJECTION_TEXTS


def test_a_reason_of_the_platform_has_a_code_and_what_it_names() -> None:
    coded = serialize_rejection_text(REJECTION_TEXTS.render("quote_not_found", evidence="E2", quote="built: in 1807"))
    assert coded is not None
    assert coded.model_dump() == {
        "code": "quote_not_found",
        "parameters": {"evidence": "E2", "quote": "built: in 1807"},
    }


def test_a_reason_in_the_words_of_others_has_no_code() -> None:
    assert serialize_rejection_text("Ask Ada.") is None
