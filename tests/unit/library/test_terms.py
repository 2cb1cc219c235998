"""What counts as the same word."""

import pytest

from offing.library.terms import LONGEST, fold, terms


def found(text: str) -> list[str]:
    return list(terms(text))


@pytest.mark.parametrize("written", ["maxRequestsPerClient", "max_requests_per_client", "max-requests-per-client"])
def test_an_identifier_is_findable_whole_and_by_its_parts(written: str) -> None:
    assert found(written) == ["maxrequestspercli", "max", "request", "client"]


def test_a_member_of_an_object_is_findable_by_its_own_name() -> None:
    assert found("pool.maxSize") == ["poolmaxs", "pool", "maxsiz", "max", "size"]


def test_words_of_a_family_share_a_term() -> None:
    assert len(set(found("connection connections connected connecting"))) == 1


def test_words_that_say_nothing_are_left_out() -> None:
    assert found("How is it that there was an agent?") == ["agent"]


def test_an_apostrophe_joins() -> None:
    assert found("client's clients don\u2019t") == ["client", "client"]


def test_case_width_and_accents_make_no_difference() -> None:
    assert fold("\uff23af\u00e9") == fold("CAFE\u0301") == "cafe"


def test_scripts_without_spaces_are_cut_into_pairs() -> None:
    assert found("\u6771\u4eac\u90fd") == ["\u6771\u4eac", "\u4eac\u90fd"]


def test_words_of_other_scripts_stay_whole() -> None:
    assert found("\u041c\u043e\u0441\u043a\u0432\u0430 \u03b1\u03b2\u03b3") == [
        "\u043c\u043e\u0441\u043a\u0432\u0430",
        "\u03b1\u03b2\u03b3",
    ]


def test_encoded_data_makes_no_terms() -> None:
    assert found("x" * (LONGEST + 1)) == []


def test_error_codes_are_findable_whole() -> None:
    assert "fsterrctpinvalidmediatyp" in found("FST_ERR_CTP_INVALID_MEDIA_TYPE")
