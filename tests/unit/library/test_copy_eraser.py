"""Copies of a text are found and taken out."""

from offing.library.copy_eraser import ERASED, CopyEraser

SECRET = "The mill at Ardenfall was sold to Ina Brook in the spring of nineteen twelve for eleven hundred crowns."
COPIES = CopyEraser([SECRET], text_ids=["a1"], quotes=["sold to Ina Brook"], names=["Mill ledger"])


def test_a_copy_is_taken_out_and_the_rest_stays() -> None:
    assert COPIES.erase(f"E3 says: {SECRET} That is all.") == f"E3 says: {ERASED}. That is all."


def test_line_breaks_case_and_escapes_do_not_hide_a_copy() -> None:
    broken = "the MILL at\\nArdenfall was\n  sold to Ina Brook in"
    assert COPIES.erase(broken) == ERASED


def test_a_short_quote_is_taken_out_when_it_is_known() -> None:
    assert COPIES.erase("It was sold to Ina Brook, they say.") == f"It was {ERASED}, they say."


def test_other_text_is_left_as_it_was() -> None:
    text = "The mill was sold for much money in the spring."
    assert COPIES.erase(text) is text


def test_a_title_is_taken_out_where_it_stands_alone() -> None:
    assert COPIES.erase("Mill ledger") == ERASED
    assert COPIES.erase("What does the Mill ledger say?") == "What does the Mill ledger say?"


def test_json_of_the_text_loses_every_text_but_its_ids() -> None:
    results = {"text_id": "a1", "source": "s1", "text": "short", "start": 3, "title": "Mill ledger"}
    assert COPIES.erase_json({"passages": [results]}) == {
        "passages": [{"text_id": "a1", "source": "s1", "text": ERASED, "start": 3, "title": ERASED}]
    }


def test_json_of_another_text_is_left_alone() -> None:
    other = {"span": {"text_id": "a2", "start": 0, "end": 9}, "quote": SECRET}
    assert COPIES.erase_json([other]) == [other]


def test_json_without_an_owner_is_searched() -> None:
    assert COPIES.erase_json({"record": {"note": SECRET, "turn": 3}}) == {"record": {"note": f"{ERASED}.", "turn": 3}}


def test_a_text_shorter_than_a_run_is_found_whole() -> None:
    assert CopyEraser(["Ina Brook owns the mill"]).erase("So: Ina Brook owns the mill!") == f"So: {ERASED}!"
