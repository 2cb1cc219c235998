"""Where a text is cut."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from offing.library.passages import MAX_PASSAGE_WORDS, MAX_UNIT_CHARS, find_first_heading, split_passages

PROSE = "A pool keeps sockets open for later requests. "


def texts(text: str) -> list[str]:
    return [text[p.start : p.end] for p in split_passages(text)]


def test_a_passage_carries_the_headings_it_stands_under() -> None:
    text = f"# Guide\n\n{PROSE * 12}\n\n## Pools\n\n{PROSE * 12}\n\n# Other\n\n{PROSE * 12}"
    assert [p.headings for p in split_passages(text)] == [("Guide",), ("Guide", "Pools"), ("Other",)]


def test_a_new_section_starts_a_new_passage() -> None:
    text = f"# One\n\n{PROSE * 8}\n\n# Two\n\n{PROSE * 8}"
    assert [t.split()[1] for t in texts(text)] == ["One", "Two"]


def test_a_tiny_section_stays_with_the_next() -> None:
    assert len(split_passages("# A\n\nShort.\n\n# B\n\nShort, too.")) == 1


def test_a_long_section_is_cut_at_sentences_and_repeats_one() -> None:
    sentences = [f"Sentence number {n} tells about sockets and pools and requests." for n in range(60)]
    parts = texts(" ".join(sentences))
    assert len(parts) > 2
    for before, after in pairwise(parts):
        assert before.endswith(".")
        assert before.rpartition(". ")[2] == after.split(". ")[0] + "."


def test_passages_stay_short() -> None:
    assert all(len(t.split()) <= MAX_PASSAGE_WORDS for t in texts(PROSE * 500))


def test_what_looks_like_a_heading_inside_code_is_none() -> None:
    text = f"# Real\n\n{PROSE * 9}\n\n```sh\n# comment\nmake up\n```\n\n{PROSE * 9}"
    assert {p.headings for p in split_passages(text)} == {("Real",)}


def test_underlined_titles_are_headings() -> None:
    assert find_first_heading("Guide\n=====\n\nText") == "Guide"


def test_front_matter_is_no_heading() -> None:
    assert find_first_heading("---\ntitle: Pools\ndraft: true\n---\n\nText\n\n# First\n") == "First"


def test_headings_lose_their_markup() -> None:
    assert find_first_heading("## [`Pool`](x.md) *options* <a id='p'></a>") == "Pool options"


def test_one_endless_line_is_cut_in_time() -> None:
    began = time.thread_time()
    parts = texts("a" * 2_000_000)
    assert time.thread_time() - began < 5
    assert all(len(p) <= 2 * MAX_UNIT_CHARS for p in parts)


def test_a_text_without_words_has_no_passages() -> None:
    assert split_passages("\n\n---\n***\n") == ()


@given(st.text(alphabet=st.sampled_from("ab .\n#`-=|\u00e9\U0001f600\u4e2d\t1"), max_size=400))
def test_every_word_is_in_a_passage_and_spans_are_in_order(text: str) -> None:
    cuts = split_passages(text)
    assert all(0 <= p.start < p.end <= len(text) for p in cuts)
    assert [p.start for p in cuts] == sorted(p.start for p in cuts)
    covered = {at for p in cuts for at in range(p.start, p.end)}
    assert all(at in covered for at, c in enumerate(text) if c.isalpha())
