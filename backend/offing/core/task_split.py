"""The split of tasks made from runs: what is about the same stays on one side. The functions are pure.

Runs are visited from the oldest to the newest, and a run joins the cluster of an earlier one. Runs that come later
never change where an earlier one is, so a split that was trained on stays unchanged.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.scoring import normalize_answer
from offing.core.shared_terms import list_terms

MIN_RELATED_OVERLAP = 0.6
"""Minimum shared fraction of the terms of two questions that stay on one side."""

MIN_DUPLICATE_OVERLAP = 0.9
"""Minimum shared fraction of the terms of two questions that are one. All of their numbers must be the same, too."""


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run with what decides its cluster."""

    run_id: UUID
    thread_id: UUID
    question: str
    forked_from_id: UUID | None = None
    """`None` means that it is not a fork, or that its origin was deleted."""
    recorded_split_run_id: UUID | None = None
    """Cluster that an earlier set has recorded. `None` means none."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Where each run belongs."""

    split_run_ids: Mapping[UUID, UUID]
    """By run, the oldest run of its cluster."""
    bridging: frozenset[UUID]
    """Runs that belong to clusters of both sides. They can be on neither."""


@dataclass
class _Clusters:
    """The clusters so far, by what finds them."""

    by_key: dict[str, set[UUID]] = field(default_factory=dict[str, set[UUID]])
    by_term: dict[str, list[tuple[UUID, frozenset[str]]]] = field(
        default_factory=dict[str, list[tuple[UUID, frozenset[str]]]]
    )


def is_held_out(split_run_id: UUID, seed: int, fraction: float) -> bool:
    """Return the side of a cluster. It depends on its oldest run and the seed alone."""
    digest = hashlib.sha256(f"{seed} {split_run_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < fraction


def plan_split(runs: Sequence[AskedRun], seed: int, fraction: float) -> SplitPlan:
    """Return the clusters of runs, which are given oldest first, and the runs that would connect both sides."""
    clusters, homes, bridging = _Clusters(), dict[UUID, UUID](), set[UUID]()
    for run in runs:
        keys, terms = _list_keys(run), list_terms(run.question)
        linked = _find_linked(clusters, keys, terms)
        home = run.recorded_split_run_id or (min(linked, key=str) if linked else run.run_id)
        sides = {is_held_out(one, seed, fraction) for one in (*linked, home)}
        if len(sides) > 1:
            bridging.add(run.run_id)
        homes[run.run_id] = home
        for key in keys:
            clusters.by_key.setdefault(key, set()).update({*linked, home})
        for term in terms:
            clusters.by_term.setdefault(term, []).append((home, terms))
    return SplitPlan(homes, frozenset(bridging))


def is_same_question(one: str, other: str) -> bool:
    """Return whether two questions differ at most in words that change nothing, such as articles and their order."""
    if normalize_answer(one) == normalize_answer(other):
        return True
    left, right = list_terms(one), list_terms(other)
    has_same_numbers = {t for t in left if t.isdecimal()} == {t for t in right if t.isdecimal()}
    return has_same_numbers and _overlap(left, right) >= MIN_DUPLICATE_OVERLAP


def _list_keys(run: AskedRun) -> tuple[str, ...]:
    """What equal clusters share: the thread, the fork's origin and the words of the question."""
    keys = (f"thread {run.thread_id}", f"run {run.run_id}", f"words {normalize_answer(run.question)}")
    return (*keys, f"run {run.forked_from_id}") if run.forked_from_id else keys


def _find_linked(clusters: _Clusters, keys: Sequence[str], terms: frozenset[str]) -> set[UUID]:
    linked = {home for key in keys for home in clusters.by_key.get(key, ())}
    shared = Counter((home, others) for term in terms for home, others in set(clusters.by_term.get(term, ())))
    return linked | {home for home, others in shared if _overlap(terms, others) >= MIN_RELATED_OVERLAP}


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard index. Two empty sets share nothing."""
    return len(one & other) / len(one | other) if one or other else 0.0
