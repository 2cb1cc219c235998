"""What counts as the same word."""

import pytest

from offing.library.terms import MAX_TERM_CHARS, extract_terms, fold_word


def list_terms(text: str) -> list[str]:
    return list(extract_terms(text))


@pytest.mark.parametrize("written", ["maxRequestsPerClient", "max_requests_per_client", "max-requests-per-client"])
def test_an_identifier_is_findable_whole_and_by_its_parts(written: str) -> None:
    assert list_terms(written) == ["maxrequestspercli", "max", "request", "client"]


def test_a_member_of_an_object_is_findable_by_its_own_name() -> None:
    assert list_terms("pool.maxSize") == ["poolmaxs", "pool", "maxsiz", "max", "size"]


def test_words_of_a_family_share_a_term() -> None:
    assert len(set(list_terms("connection connections connected connecting"))) == 1


def test_words_that_say_nothing_are_left_out() -> None:
    assert list_terms("How is it that there was an agent?") == ["agent"]


def test_an_apostrophe_joins() -> None:
    assert list_terms("client's clients don\u2019t") == ["client", "client"]


def test_case_width_and_accents_make_no_difference() -> None:
    assert fold_word("\uff23af\u00e9") == fold_word("CAFE\u0301") == "cafe"


def test_scripts_without_spaces_are_cut_into_pairs() -> None:
    assert list_terms("\u6771\u4eac\u90fd") == ["\u6771\u4eac", "\u4eac\u90fd"]


def test_words_of_other_scripts_stay_whole() -> None:
    assert list_terms("\u041c\u043e\u0441\u043a\u0432\u0430 \u03b1\u03b2\u03b3") == [
        "\u043c\u043e\u0441\u043a\u0432\u0430",
        "\u03b1\u03b2\u03b3",
    ]


def test_encoded_data_makes_no_terms() -> None:
    assert list_terms("x" * (MAX_TERM_CHARS + 1)) == []


def test_error_codes_are_findable_whole() -> None:
    assert "fsterrctpinvalidmediatyp" in list_terms("FST_ERR_CTP_INVALID_MEDIA_TYPE")
