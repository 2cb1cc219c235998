"""How a passage is completed by the text around it, and how passages that touch become one."""

import pytest

from offing.library.neighbors import (
    MAX_CHARS_AFTER,
    MAX_CHARS_BEFORE,
    MAX_HEADER_CHARS,
    MAX_MERGED_CHARS,
    MAX_WHOLE_CHARS,
    MAX_WHOLE_WORDS,
    MergedRange,
    PassageWindow,
    complete_passage,
    find_header_row,
    merge_ranges,
)

FILLER = "Other things are said about sockets here.\n\n" * 60


def complete(before: str, passage: str, after: str = "\n\nNext.") -> str:
    """Return the completed passage of a long document."""
    text = f"{FILLER}{before}{passage}{after}{FILLER}"
    start = len(FILLER) + len(before)
    window = PassageWindow(start, start + len(passage), text, 0, len(text))
    begin, end = complete_passage(window)
    assert begin <= start
    assert end >= start + len(passage)
    return text[begin:end]


def test_a_passage_that_is_complete_stays() -> None:
    assert complete("A paragraph.\n\n", "Pools keep sockets.") == "Pools keep sockets."
    assert complete("## Heading\n\n", "It keeps sockets.") == "It keeps sockets."


def test_the_second_half_of_a_paragraph_gets_its_first() -> None:
    assert complete("First half. Second sentence. ", "Second half.") == "First half. Second sentence. Second half."


def test_positions_are_those_of_the_whole_text_where_the_window_is_a_part_of_it() -> None:
    text = f"{FILLER}First half. Second one and the rest.\n\n{FILLER}"
    window = PassageWindow(5_012, 5_022, text, 5_000 - len(FILLER), 20_000)
    begin, end = complete_passage(window)
    assert window.text[begin - window.first : end - window.first] == "First half. Second one and the rest."


def test_the_first_block_of_a_document_is_returned_from_its_beginning() -> None:
    text = f"First half. Second half.\n\n{FILLER}"
    assert complete_passage(PassageWindow(12, 24, text, 0, len(text))) == (0, 24)
    text = f"A pool has limits.\n\nIt keeps sockets.\n\n{FILLER}"
    assert complete_passage(PassageWindow(20, 37, text, 0, len(text))) == (0, 37)


def test_a_long_block_before_a_pronoun_is_not_added_where_the_window_or_the_document_begins() -> None:
    before = "| north | 10 |\n" * 270 + "\n"
    window = PassageWindow(9_000, 9_010, f"{before}It closes.\n\n{FILLER}", 9_000 - len(before), 20_000)
    assert complete_passage(window) == (9_000, 9_010)
    text = f"{before}It closes.\n\n{FILLER}"
    start = len(before)
    assert complete_passage(PassageWindow(start, start + 10, text, 0, len(text))) == (start, start + 10)


def test_the_half_of_a_long_paragraph_gets_the_sentence_before_it() -> None:
    long = "A sentence about nothing much at all. " * (MAX_CHARS_BEFORE // 20)
    assert complete(f"{long}The last one. ", "Second half.") == "The last one. Second half."


@pytest.mark.parametrize("start", ["It closes", "However, it closes", "\u56e0\u6b64\u5173\u95ed", "Er ist"])
def test_a_sentence_that_refers_to_the_one_before_gets_the_paragraph_before(start: str) -> None:
    assert complete("A pool has limits.\n\n", f"{start}.") == f"A pool has limits.\n\n{start}."


def test_a_list_is_returned_from_its_first_item_and_with_the_line_that_announces_it() -> None:
    assert complete("Steps:\n\n- one\n- two\n", "- three") == "Steps:\n\n- one\n- two\n- three"
    assert complete("Steps:\n\n", "- one") == "Steps:\n\n- one"
    assert complete("Steps.\n\n", "- one") == "- one"
    assert complete("Steps:\n\n", "Text.") == "Text."
    assert complete("Sizes:\n\n| Pool |\n| --- |\n", "| 10 |") == "Sizes:\n\n| Pool |\n| --- |\n| 10 |"
    assert complete("Steps:\n\nOne half. ", "Other half.") == "One half. Other half."


def test_a_table_is_returned_with_its_header_row_if_that_is_near() -> None:
    head = "| Pool | Size |\n| --- | --- |\n| north | 10 |\n"
    assert complete(head, "| south | 20 |") == f"{head}| south | 20 |"


def test_a_far_header_row_is_found() -> None:
    rows = "| north | 10 |\n" * 900
    assert complete(f"| Pool | Size |\n| --- | --- |\n{rows}", "| south | 20 |") == "| south | 20 |"
    assert complete("| A row. With a sentence. |\n" * 90, "| south | 20 |") == "| south | 20 |"
    assert len(find_header_row(f"| {'Pool' * 200} |\n|---|\n", "| south |")) == MAX_HEADER_CHARS
    assert find_header_row("Text\n| Pool |\n|---|\n", "| south |") == "| Pool |"
    assert find_header_row(f"x\n\n| Pool | Size |\n|---|:--|\n{rows}", "| south | 20 |") == "| Pool | Size |"


@pytest.mark.parametrize(
    ("before", "passage"),
    [
        ("| Pool | Size |\n| --- | --- |\n| north | 10 |\n\n", "| other | table |"),
        ("| no | header |\n| north | 10 |\n", "| south | 20 |"),
        ("| Pool | Size |\n| --- | --- |\n", "Text."),
        ("", "| Pool | Size |"),
    ],
)
def test_a_header_row_is_only_taken_from_the_same_table(before: str, passage: str) -> None:
    assert find_header_row(before, passage) == ""


def test_an_unfinished_paragraph_and_an_announced_list_are_returned_to_their_end() -> None:
    assert complete("\n\n", "Pools keep", " sockets open.\n\nNext.") == "Pools keep sockets open."
    assert complete("\n\n", "Steps:", "\n\n- one\n- two\n\nNext.") == "Steps:\n\n- one\n- two"
    assert complete("\n\n", "Pools keep", " sockets" * 100 + "\n\nNext.") == "Pools keep"
    assert complete("\n\n", "Steps:", "\n\n" + "- one\n" * 100 + "\n\nNext.") == "Steps:"


def test_an_unfinished_paragraph_at_the_end_of_a_document_is_returned_to_its_end() -> None:
    text = f"{FILLER}Pools keep sockets open. "
    start = len(FILLER)
    assert complete_passage(PassageWindow(start, start + 10, text, 0, len(text))) == (start, len(text) - 1)
    text = FILLER + "Pools keep" + " sockets" * (MAX_CHARS_AFTER // 8 + 1)
    assert complete_passage(PassageWindow(start, start + 10, text, 0, len(text))) == (start, start + 10)
    text = f"{FILLER}# Pools "
    assert complete_passage(PassageWindow(start, len(text), text, 0, len(text))) == (start, len(text))


def test_a_short_document_is_returned_completely() -> None:
    text = "# Pools\n\nThey keep sockets.\n\nThe end."
    assert complete_passage(PassageWindow(9, 27, text, 0, len(text))) == (0, len(text))
    assert complete_passage(PassageWindow(9, 27, text, 0, len(text) + 1))[1] == 27
    assert complete_passage(PassageWindow(10, 28, text, 1, len(text)))[1] == 28


@pytest.mark.parametrize("tail", ["a " * MAX_WHOLE_WORDS, "\n" * MAX_WHOLE_CHARS])
def test_a_document_of_many_words_or_code_points_is_not_short(tail: str) -> None:
    text = f"# Pools\n\nThey keep sockets.\n\n{tail}"
    assert complete_passage(PassageWindow(9, 27, text, 0, len(text)))[1] == 27


def test_ranges_that_touch_become_one_at_the_best_rank() -> None:
    assert merge_ranges([("a", 0, 9), ("a", 12, 20)]) == [MergedRange(0, 0, 0, 9), MergedRange(1, 1, 12, 20)]
    assert merge_ranges([("a", 0, 9), ("a", 11, 20)]) == [MergedRange(0, 0, 0, 20)]
    assert merge_ranges([("a", 0, 9), ("b", 9, 20)]) == [MergedRange(0, 0, 0, 9), MergedRange(1, 1, 9, 20)]
    assert merge_ranges([("a", 2, 9), ("a", 0, 20)]) == [MergedRange(0, 1, 0, 20)]
    assert merge_ranges([("a", 2, 9), ("a", 0, 9), ("a", 0, 3)]) == [MergedRange(0, 1, 0, 9)]
    assert merge_ranges([("a", 2, 9), ("b", 0, 9), ("a", 0, 20)])[0] == MergedRange(0, 2, 0, 20)
    ranges = [("a", 50, 60), ("b", 0, 9), ("a", 40, 52), ("a", 61, 70), ("a", 42, 44), ("a", 90, 99)]
    assert merge_ranges(ranges) == [
        MergedRange(0, 2, 40, 70),
        MergedRange(1, 1, 0, 9),
        MergedRange(5, 5, 90, 99),
    ]


def test_ranges_that_are_too_long_together_have_no_common_part() -> None:
    assert merge_ranges([("a", 0, MAX_MERGED_CHARS), ("a", MAX_MERGED_CHARS - 9, 2 * MAX_MERGED_CHARS)]) == [
        MergedRange(0, 0, 0, MAX_MERGED_CHARS),
        MergedRange(1, 1, MAX_MERGED_CHARS, 2 * MAX_MERGED_CHARS),
    ]
