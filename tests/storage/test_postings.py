"""How the postings of texts are packed, merged and removed, without a database."""

import pytest

from offing.storage.postings import (
    NARROW_PASSAGES,
    SEGMENTS_PER_MERGE,
    SegmentRow,
    TextPostings,
    choose_merge,
    pack_segment,
    pack_text,
    remove_passages,
    unpack_bucket,
)

SEGMENT = SegmentRow(1, 100, 110)
TEXTS = [
    (100, TextPostings(["mole", "tide"], [2, 1], [0, 2, 1], [0.5, 1.0, 0.2])),
    (104, TextPostings(["mole"], [1], [1], [0.9])),
]


def list_segments(*counts: int) -> list[SegmentRow]:
    segments, first = list[SegmentRow](), 0
    for number, count in enumerate(counts):
        segments.append(SegmentRow(number, first, first + count))
        first += count
    return segments


def build_bucket() -> bytes:
    _, bodies = pack_segment(SEGMENT, [pack_text(SEGMENT, *text) for text in TEXTS])
    (body,) = bodies.values()
    return body


def list_places(body: bytes) -> dict[str, list[int]]:
    terms, counts, entries = unpack_bucket(body, SEGMENT)
    places = iter(entries["place"].tolist())
    return {term: [next(places) for _ in range(count)] for term, count in zip(terms, counts, strict=True)}


def test_a_bucket_holds_the_places_of_each_term() -> None:
    assert list_places(build_bucket()) == {"mole": [0, 2, 5], "tide": [1]}


def test_a_removed_text_leaves_neither_its_passages_nor_its_own_terms() -> None:
    body = remove_passages(build_bucket(), SEGMENT, [(100, 3)])
    assert body is not None
    assert list_places(body) == {"mole": [5]}
    assert b"tide" not in body


def test_the_weights_of_other_texts_stay() -> None:
    body = remove_passages(build_bucket(), SEGMENT, [(104, 2)])
    assert body is not None
    assert unpack_bucket(body, SEGMENT)[2]["weight"].tolist() == [128, 255, 51]


def test_a_bucket_without_the_removed_passages_is_not_written_again() -> None:
    assert remove_passages(build_bucket(), SEGMENT, [(103, 1), (106, 4)]) is None


def test_nothing_is_left_of_a_bucket_whose_texts_are_removed() -> None:
    assert remove_passages(build_bucket(), SEGMENT, [(100, 3), (104, 2)]) == b""


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ([1] * (SEGMENTS_PER_MERGE - 1), 0),
        ([1] * SEGMENTS_PER_MERGE, SEGMENTS_PER_MERGE),
        ([9_000, *[1] * SEGMENTS_PER_MERGE], SEGMENTS_PER_MERGE),
        ([*[1] * SEGMENTS_PER_MERGE, 20_000], 0),
        ([1_000] * SEGMENTS_PER_MERGE, SEGMENTS_PER_MERGE),
        ([60_000, *[8_000] * SEGMENTS_PER_MERGE], SEGMENTS_PER_MERGE),
        ([16_000] * SEGMENTS_PER_MERGE, NARROW_PASSAGES // 16_000),
        ([60_000] * SEGMENTS_PER_MERGE, 0),
    ],
)
def test_small_segments_at_the_end_are_merged_when_they_are_many(counts: list[int], merged: int) -> None:
    segments = list_segments(*counts)
    assert list(choose_merge(segments)) == segments[len(segments) - merged :]
