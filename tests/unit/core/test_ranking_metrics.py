"""What a run retrieved is compared with the reference evidence in the order of its retrieval."""

import math
from uuid import UUID

import pytest

from offing.core.ranking_metrics import retrieval_ndcg, retrieval_recall
from offing.core.report import Evidence
from offing.core.scoring import ReferenceEvidence
from offing.core.tool import SourceSpan


def a_passage(document: int, text: str = "Nothing of note.", start: int = 0) -> Evidence:
    span = SourceSpan(UUID(int=100 + document), start, start + len(text))
    return Evidence(f"E{document}", span, text, UUID(int=document), f"Document {document}")


FIRE = ReferenceEvidence("The tower burned in 1755.", "Document 1")
STORM = ReferenceEvidence("", "document 2")


def test_recall_is_the_fraction_of_the_evidence_among_the_first_passages() -> None:
    retrieved = [a_passage(3), a_passage(1, "It is known. The tower burned in 1755. It was wood."), a_passage(2)]
    assert retrieval_recall(retrieved, [FIRE, STORM]) == 1.0
    assert retrieval_recall(retrieved, [FIRE, STORM], 2) == 0.5
    assert retrieval_recall(retrieved, [FIRE, STORM], 1) == 0.0
    assert retrieval_recall([], [FIRE]) == 0.0
    assert retrieval_recall([], []) == 1.0


def test_evidence_is_retrieved_only_with_its_words_its_source_and_its_range() -> None:
    words = "The tower burned in 1755."
    assert retrieval_recall([a_passage(1, "Another part of the document.")], [FIRE]) == 0.0
    assert retrieval_recall([a_passage(4, words)], [FIRE]) == 0.0
    assert retrieval_recall([a_passage(4, words)], [ReferenceEvidence(words)]) == 1.0
    assert retrieval_recall([a_passage(1, words, 50)], [ReferenceEvidence("", "Document 1", 0, 50)]) == 0.0
    assert retrieval_recall([a_passage(1, words, 49)], [ReferenceEvidence("", "Document 1", 0, 50)]) == 1.0
    assert retrieval_recall([a_passage(1, "tower burned")], [FIRE]) == 1.0, "a part of the evidence was read"


def test_ndcg_discounts_each_document_by_its_rank_and_counts_it_once() -> None:
    burned = a_passage(1, "The tower burned in 1755.")
    best = [burned, a_passage(1, "More.", 90), a_passage(2), a_passage(3)]
    assert retrieval_ndcg(best, [FIRE, STORM], 10) == 1.0
    late = [a_passage(3), burned, a_passage(4), a_passage(2)]
    expected = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert retrieval_ndcg(late, [FIRE, STORM], 10) == pytest.approx(expected)
    assert retrieval_ndcg(late, [FIRE, STORM], 2) == pytest.approx(1 / math.log2(3) / (1 + 1 / math.log2(3)))
    assert retrieval_ndcg(late, [FIRE, STORM], 1) == 0.0
    assert retrieval_ndcg([a_passage(3), burned], [FIRE], 10) == pytest.approx(1 / math.log2(3))


def test_a_document_has_the_rank_of_its_first_passage_even_if_a_later_one_states_the_evidence() -> None:
    ranks = [a_passage(1), a_passage(3), a_passage(1, "The tower burned in 1755.", 40)]
    assert retrieval_ndcg(ranks, [FIRE], 10) == 1.0


def test_a_second_document_with_the_same_evidence_gains_nothing() -> None:
    twice = [a_passage(3, "It burned."), a_passage(4, "It burned.")]
    assert retrieval_ndcg(twice, [ReferenceEvidence("It burned.")], 10) == 1.0


def test_quotes_without_a_source_in_one_document_are_one_document() -> None:
    both = [a_passage(3, "It burned. It was rebuilt.")]
    quotes = [ReferenceEvidence("It burned."), ReferenceEvidence("It was rebuilt.")]
    assert retrieval_ndcg(both, quotes, 10) == 1.0
    assert retrieval_ndcg(both, [*quotes, STORM], 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert retrieval_ndcg([], [], 10) == 1.0
