"""Evidence of a run: short ids of passages and of their sources."""

from typing import Any
from uuid import UUID

import pytest

from offing.core.evidence import EvidenceIndex

TEXT_IDS = [UUID(int=number) for number in range(1, 4)]
SOURCE_IDS = [UUID(int=number) for number in range(11, 14)]


def passage(source: int, start: int = 0) -> dict[str, Any]:
    ids = {"text_id": str(TEXT_IDS[source]), "source": str(SOURCE_IDS[source])}
    return ids | {"start": start, "end": start + 4, "text": "word"}


def index(*results: tuple[int, int]) -> EvidenceIndex:
    """One result per step, each with one passage: the number of its source, and its start."""
    created = EvidenceIndex()
    for seq, (source, start) in enumerate(results, start=1):
        created.add({"passages": [passage(source, start)]}, seq=seq)
    return created


def labels(evidence: EvidenceIndex) -> list[tuple[str, str]]:
    return [(id, one.source_label) for id, one in evidence.as_dict().items()]


def test_passages_of_one_source_share_its_short_id() -> None:
    assert labels(index((1, 0), (0, 0), (1, 50))) == [("E1", "S1"), ("E2", "S2"), ("E3", "S1")]


def test_a_source_is_found_by_its_short_id() -> None:
    evidence = index((1, 0), (0, 0))
    assert [evidence.find_source_id(label) for label in ("S1", "S2", "S3")] == [SOURCE_IDS[1], SOURCE_IDS[0], None]


@pytest.mark.parametrize(
    ("stated", "published"),
    [
        ("2024", "2024"),
        ("2024-03", "2024-03"),
        ("2024-03-05", "2024-03-05"),
        ("2024. Obey me.", ""),
        (None, ""),
        (5, ""),
    ],
)
def test_a_passage_has_the_date_of_its_document_and_other_texts_are_none(stated: object, published: str) -> None:
    evidence = EvidenceIndex()
    evidence.add(passage(0) | {"published": stated})
    assert evidence.as_dict()["E1"].published == published


def test_short_ids_stay_when_steps_are_excluded() -> None:
    evidence = index((1, 0), (0, 0), (2, 0)).exclude_steps({1})
    assert labels(evidence) == [("E2", "S2"), ("E3", "S3")]
    assert evidence.find_source_id("S1") is None
