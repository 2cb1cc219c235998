"""Postings of several segments in one, without a database."""

from offing.storage.postings import (
    OWN_ROW_BYTES,
    SegmentRow,
    TextPostings,
    move_buckets,
    pack_segment,
    pack_text,
    unpack_bucket,
)

FIRST, SECOND, MERGED = SegmentRow(1, 100, 300), SegmentRow(2, 300, 310), SegmentRow(3, 100, 310)
PLACES = list(range(0, 200))


def pack_first() -> dict[int, bytes]:
    """A segment in which the tide is so frequent that it has its own row."""
    postings = TextPostings(["tide", "mole"], [len(PLACES), 2], [*PLACES, 3, 7], [0.5] * (len(PLACES) + 2))
    return pack_segment(FIRST, [pack_text(FIRST, 100, postings)])[1]


def pack_second() -> dict[int, bytes]:
    texts = [(300, TextPostings(["mole", "buoy"], [1, 1], [0, 0], [1.0, 0.2])),
             (304, TextPostings(["mole"], [1], [2], [0.8]))]  # fmt: skip
    return pack_segment(SECOND, [pack_text(SECOND, *text) for text in texts])[1]


def list_entries(bodies: dict[int, bytes], segment: SegmentRow) -> dict[str, list[tuple[int, int]]]:
    """Return the number of each passage with its weight, by term."""
    entries: dict[str, list[tuple[int, int]]] = {}
    for body in bodies.values():
        rows = iter(unpack_bucket(body, segment).entries.tolist())
        terms, counts, _ = unpack_bucket(body, segment)
        for term, count in zip(terms, counts.tolist(), strict=True):
            pairs = [next(rows) for _ in range(count)]
            entries[term] = [(place + segment.first_passage, weight) for place, weight in pairs]
    return entries


def test_a_merged_segment_has_the_entries_of_all_in_the_order_of_the_passages() -> None:
    moved = [move_buckets(pack_first().values(), FIRST, MERGED), move_buckets(pack_second().values(), SECOND, MERGED)]
    assert list_entries(pack_segment(MERGED, moved)[1], MERGED) == {
        "tide": [(100 + place, 128) for place in PLACES],
        "mole": [(103, 128), (107, 128), (300, 255), (306, 204)],
        "buoy": [(300, 51)],
    }


def test_a_frequent_term_has_a_row_of_its_own() -> None:
    own, shared = pack_first().items()
    assert (own[0] < 0, len(own[1]) > OWN_ROW_BYTES, unpack_bucket(own[1], FIRST).terms) == (True, True, ["tide"])
    assert (shared[0] >= 0, unpack_bucket(shared[1], FIRST).terms) == (True, ["mole"])


def test_segments_without_terms_become_one_without_terms() -> None:
    nothing = pack_text(FIRST, 100, TextPostings([], [], [], []))
    assert pack_segment(FIRST, [nothing]) == (1, {})
    assert pack_segment(MERGED, [move_buckets([], FIRST, MERGED), move_buckets([], SECOND, MERGED)]) == (1, {})
