"""Metrics of what a run retrieved, from 0 to 1. The functions are pure.

The ranking of a run is the order of its evidence: passages in the order of the calls that returned them, and within a
call in the order of its result. A passage that several calls returned counts where it was returned first. The
rankings of several searches are thus concatenated and not interleaved, so a run that needs several searches
has a lower value than a single search with the same passages in its first ranks.
"""

import math
from collections.abc import Iterable, Sequence

from offing.core.report import Evidence
from offing.core.scoring import ReferenceEvidence, states_evidence


def retrieval_recall(
    retrieved: Sequence[Evidence], evidence: Sequence[ReferenceEvidence], depth: int | None = None
) -> float:
    """Return the fraction of the reference evidence that the first `depth` passages state.

    `None` means all passages. The value is 1 if there is no reference evidence.
    """
    if not evidence:
        return 1.0
    top = retrieved if depth is None else retrieved[:depth]
    return sum(any(_states(passage, item) for passage in top) for item in evidence) / len(evidence)


def retrieval_ndcg(retrieved: Sequence[Evidence], evidence: Sequence[ReferenceEvidence], depth: int) -> float:
    """Return the normalized discounted cumulative gain of the first `depth` documents, with binary gains.

    The rank of a document is that of its first passage. A document has gain 1 if one of its passages states
    reference evidence that no document of a better rank states. The formula is that of Järvelin and Kekäläinen
    (2002) with the discount log2(rank + 1), which TREC's `ndcg_cut` uses too. The ideal ranking begins with all
    documents of the reference evidence. The value is 1 if there is no reference evidence.
    """
    if not evidence:
        return 1.0
    gains, document_count = _gain_documents(retrieved, evidence)
    return _sum_discounted(gains[:depth]) / _sum_discounted([1] * min(depth, document_count))


def _gain_documents(retrieved: Sequence[Evidence], evidence: Sequence[ReferenceEvidence]) -> tuple[list[int], int]:
    """Return the gain of each retrieved document in order, and the number of documents of the reference evidence.

    Evidence with the same source is one document. Evidence without a source is one document per quote, and quotes
    that one retrieved document states are one document.
    """
    waiting = {(item.source or item.quote).strip().casefold() for item in evidence}
    document_count, gains = len(waiting), list[int]()
    for source_id in dict.fromkeys(passage.source_id for passage in retrieved):
        passages = [passage for passage in retrieved if passage.source_id == source_id]
        stated = waiting & _list_stated(passages, evidence)
        gains.append(int(bool(stated)))
        document_count -= max(0, len(stated) - 1)
        waiting -= stated
    return gains, document_count


def _list_stated(passages: Iterable[Evidence], evidence: Sequence[ReferenceEvidence]) -> set[str]:
    stated = {item for passage in passages for item in evidence if _states(passage, item)}
    return {(item.source or item.quote).strip().casefold() for item in stated}


def _states(passage: Evidence, item: ReferenceEvidence) -> bool:
    return states_evidence(passage.span, passage.text, passage.source_id, passage.title, item)


def _sum_discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
