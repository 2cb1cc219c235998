"""What must be true of every run, whatever was killed while it worked. Pure: rows in, violations out.

The invariants that faults are judged by.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

ENDED = {"done", "failed", "cancelled"}

UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

SEQS = {"action", "observation", "output_seq"}
"""Fields of payloads that name another step of the run."""

Key = tuple[int, str, int]
"""Superstep, path, ordinal among calls that ask the same."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    status: str
    stop_reason: str | None
    fence: int
    next_seq: int
    turns: int
    tokens: int
    usd: Decimal
    reserved: Decimal
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class StepFacts:
    seq: int
    kind: str
    fence: int
    key: Key | None
    turn: int
    tokens: int
    at: datetime
    payload: dict[str, Any]
    title: str = ""
    ok: bool = True
    digest: str = ""
    """Of what was asked, which belongs to the key."""


@dataclass(frozen=True, slots=True)
class SavedFacts:
    """A checkpoint."""

    ns: str
    id: str
    parent: str | None
    fence: int
    superstep: int
    at: datetime


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A role call as stored for trainers."""

    seq: int
    usd: Decimal
    tokens: int
    role: str = ""
    segment: int | None = None
    place: int = 0
    content: str = ""
    """Hash of prompt, completion and what they may be used for."""


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    idx: int
    role: str
    parent: int | None
    boundary_reason: str


@dataclass(frozen=True, slots=True)
class ReportFacts:
    version: int
    seq: int
    status: str
    reason: str
    body: dict[str, Any]
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Everything that a run left in the database."""

    run: RunFacts
    steps: tuple[StepFacts, ...]
    saved: tuple[SavedFacts, ...]
    calls: tuple[CallFacts, ...]
    reports: tuple[ReportFacts, ...]
    segments: tuple[SegmentFacts, ...] = ()

    def of_kind(self, *kinds: str) -> list[StepFacts]:
        return [s for s in self.steps if s.kind in kinds]


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A call at its source: an engine was really asked, and is paid."""

    role: str
    turn: int
    pid: int


def violations(rows: Rows) -> list[str]:
    """Every broken promise, in words. Empty: none."""
    rules = (sequence, keys, fences, checkpoints, ending, sums, journal, one_report, context)
    return [f"{rule.__name__}: {complaint}" for rule in rules for complaint in rule(rows)]


def sequence(rows: Rows) -> Iterable[str]:
    """Steps run 1..n without a gap, and the run knows how many there are."""
    seqs = [s.seq for s in rows.steps]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"steps are {_gaps(seqs)}"
    if rows.run.next_seq != len(seqs) + 1:
        yield f"the run counts {rows.run.next_seq - 1} steps, there are {len(seqs)}"


def keys(rows: Rows) -> Iterable[str]:
    """One step for each place in the graph's execution."""
    for (key, digest), times in Counter((s.key, s.digest) for s in rows.steps if s.key).items():
        if times > 1:
            yield f"{key} {digest} was recorded {times} times"


def fences(rows: Rows) -> Iterable[str]:
    """Nobody writes after a later owner did."""
    owned = [s for s in rows.steps if s.fence]
    for before, after in pairwise(owned):
        if after.fence < before.fence:
            yield f"step {after.seq} has fence {after.fence} after {before.fence}"
    for what, fence in [(f"step {s.seq}", s.fence) for s in owned] + [
        (f"checkpoint {c.id}", c.fence) for c in rows.saved
    ]:
        if fence > rows.run.fence:
            yield f"{what} has fence {fence}, the run has {rows.run.fence}"
    for before, after in pairwise(sorted(rows.saved, key=lambda c: c.at)):
        if after.fence < before.fence:
            yield f"checkpoint {after.id} of fence {after.fence} was saved after one of fence {before.fence}"


def checkpoints(rows: Rows) -> Iterable[str]:
    """Checkpoints follow one another: one root, no parent with two children, no lost parent, supersteps grow."""
    known = {(c.ns, c.id): c for c in rows.saved}
    for (ns, parent), children in Counter((c.ns, c.parent) for c in rows.saved).items():
        if children > 1:
            yield f"{children} checkpoints follow {parent} in {ns!r}"
    for c in rows.saved:
        before = known.get((c.ns, c.parent)) if c.parent else None
        if c.parent and before is None:
            yield f"checkpoint {c.id} follows {c.parent}, which is not there"
        if before and before.superstep >= c.superstep:
            yield f"checkpoint {c.id} of superstep {c.superstep} follows superstep {before.superstep}"


def ending(rows: Rows) -> Iterable[str]:
    """The run has ended, said so once, and nothing came after."""
    run, ends = rows.run, rows.of_kind("ended")
    if run.status not in ENDED or run.ended_at is None:
        yield f"the run is {run.status}"
    if len(ends) != 1:
        yield f"it ended {len(ends)} times"
    if not rows.steps or rows.steps[-1].kind != "ended":
        yield "its last step is not its end"
    if ends and (ends[-1].payload.get("status"), ends[-1].payload.get("stop_reason")) != (run.status, run.stop_reason):
        yield f"its end says {ends[-1].payload}, the run {run.status}, {run.stop_reason}"


def sums(rows: Rows) -> Iterable[str]:
    """What the run counts is what its steps and calls add up to, and nothing is left reserved."""
    run, failed = rows.run, rows.of_kind("failure")
    turns = max((s.turn for s in rows.steps), default=0)
    tokens = sum(s.tokens for s in rows.steps)
    usd = sum((c.usd for c in rows.calls), Decimal(0))
    usd += sum((Decimal(s.payload.get("usage", {}).get("cost_usd", 0)) for s in failed), Decimal(0))
    for name, counted, total in (("turns", run.turns, turns), ("tokens", run.tokens, tokens), ("usd", run.usd, usd)):
        if counted != total:
            yield f"the run counts {counted} {name}, its steps {total}"
    if run.reserved:
        yield f"{run.reserved} usd are still reserved"


def journal(rows: Rows) -> Iterable[str]:
    """Every role call has its row for trainers, and only those."""
    answered = {s.seq for s in rows.steps if "role" in s.payload and s.kind != "failure"}
    stored = [c.seq for c in rows.calls]
    if sorted(stored) != sorted(answered):
        yield f"role calls are steps {sorted(answered)}, their rows {sorted(stored)}"


def one_report(rows: Rows) -> Iterable[str]:
    """A run that was not cancelled has one report, beside its step."""
    seqs, stored = [s.seq for s in rows.of_kind("report")], [r.seq for r in rows.reports]
    if seqs != stored:
        yield f"report steps {seqs}, stored reports {stored}"
    if rows.run.status != "cancelled" and len(stored) != 1:
        yield f"{len(stored)} reports"


def context(rows: Rows) -> Iterable[str]:
    """Segments are counted from 0 and follow earlier ones of their role; the calls of each are in it once, in order."""
    known = {s.idx: s for s in rows.segments}
    if sorted(known) != list(range(len(rows.segments))):
        yield f"segments are {[s.idx for s in rows.segments]}"
    for s in rows.segments:
        before = known.get(s.parent) if s.parent is not None else None
        if s.parent is not None and (before is None or before.idx >= s.idx or before.role != s.role):
            yield f"segment {s.idx} of {s.role} follows {before}"
    positioned = sorted((c for c in rows.calls if c.segment is not None), key=lambda c: (c.segment, c.seq))
    for idx, calls in ((n, list(result)) for n, result in groupby(positioned, lambda c: c.segment)):
        if [c.place for c in calls] != list(range(len(calls))):
            yield f"the calls of segment {idx} have places {[c.place for c in calls]}"
        if idx not in known or {c.role for c in calls} != {known[idx].role}:
            yield f"segment {idx} is {known.get(idx or 0)}, its calls are of {sorted({c.role for c in calls})}"
    if empty := set(known) - {c.segment for c in positioned}:
        yield f"no call is in segments {sorted(empty)}"


def same_record(rows: Rows, plain: Rows) -> Iterable[str]:
    """What was done, said, edited and kept is what it is in an undisturbed run of the same, up to names of rows."""
    ours, theirs = describe_run(rows), describe_run(plain)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if mine != other:
            yield f"entry {number} is {mine}, undisturbed it is {other}"
            return
    if len(ours) != len(theirs):
        yield f"{len(ours)} entries, undisturbed {len(theirs)}"


def describe_run(rows: Rows) -> list[str]:
    """A run's work, its calls and its segments, without times, fences and ids; steps counted as if nobody was lost."""
    work = [s for s in rows.steps if s.key]
    positions = {s.seq: n for n, s in enumerate(work, 1)}
    steps = [[s.kind, s.key, s.turn, s.tokens, s.title, s.ok, _renumbered(s.payload, positions)] for s in work]
    calls = [[positions.get(c.seq), c.role, c.segment, c.place, c.content] for c in rows.calls]
    segments = [[s.idx, s.role, s.parent, s.boundary_reason] for s in rows.segments]
    names: dict[str, str] = {}
    return [
        UUID.sub(lambda m: names.setdefault(m[0], f"#{len(names)}"), json.dumps(entry, sort_keys=True, default=str))
        for entry in [*steps, *calls, *segments]
    ]


def _renumbered(payload: Mapping[str, Any], positions: Mapping[int, int]) -> dict[str, Any]:
    return {name: positions.get(value, value) if name in SEQS else value for name, value in payload.items()}


def one_tool_call_a_turn(rows: Rows, turns: int) -> Iterable[str]:
    """For a graph that acts once per turn."""
    used = [s.turn for s in rows.of_kind("tool_result")]
    if used != list(range(1, turns + 1)):
        yield f"tool calls at turns {_gaps(used)}, expected 1..{turns}"


def check_charged_once(rows: Rows, requests: Sequence[SentRequest], losses: int) -> Iterable[str]:
    """An engine is asked once a recorded call, and at most once more for each time that the run lost its worker."""
    recorded = Counter((s.payload["role"], s.turn) for s in rows.steps if "role" in s.payload)
    times = Counter((a.role, a.turn) for a in requests)
    for call, count in times.items():
        if recorded[call] == 0:
            yield f"{call} was asked {count} times and never recorded"
    for call, count in recorded.items():
        if times[call] < count:
            yield f"{call} is recorded {count} times but was asked {times[call]} times"
    repeats = sum(max(0, times[call] - count) for call, count in recorded.items())
    if repeats > losses:
        yield f"{repeats} calls were asked again, the run lost its worker {losses} times"


def check_repeated_whole(rows: Rows, requests: Sequence[SentRequest], losses: int) -> Iterable[str]:
    """Where nothing is kept before a slice ends: every call is asked, and at most once more for each lost slice."""
    recorded = Counter((s.payload["role"], s.turn) for s in rows.steps if "role" in s.payload)
    times = Counter((a.role, a.turn) for a in requests)
    for call in recorded.keys() | times.keys():
        if not recorded[call] <= times[call] <= recorded[call] * (losses + 1):
            yield f"{call} is recorded {recorded[call]} times and was asked {times[call]} times, {losses} slices lost"


# Groups ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    member: int
    attempt: int
    status: str
    outcome: str | None
    reward: float | None
    settled: bool
    scores: tuple[str, ...]
    """Scorers that left a value, one for each time."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    state: str
    completed_at: datetime | None
    size: int
    scorers: tuple[str, ...]
    rollouts: tuple[RolloutFacts, ...]


def group_violations(group: GroupFacts) -> list[str]:
    """Every broken promise of a group in which nothing failed but workers."""
    return [*_whole(group), *(f"member {r.member}: {c}" for r in group.rollouts for c in _final(r, group.scorers))]


def _whole(group: GroupFacts) -> Iterable[str]:
    """It is complete with exactly its members. A crashed worker is nobody's failure: there is no second attempt."""
    if group.state != "complete" or group.completed_at is None:
        yield f"the group is {group.state}, completed at {group.completed_at}"
    results = sorted((r.member, r.attempt) for r in group.rollouts)
    if results != [(n, 1) for n in range(group.size)]:
        yield f"members and attempts are {results}, expected one each of {group.size}"


def _final(rollout: RolloutFacts, scorers: tuple[str, ...]) -> Iterable[str]:
    """It has ended, with one outcome, one value of each scorer and so one reward."""
    if rollout.status not in ENDED or rollout.outcome is None or not rollout.settled:
        yield f"its run is {rollout.status}, its outcome {rollout.outcome}, settled: {rollout.settled}"
    if rollout.reward is None:
        yield "it has no reward"
    if sorted(rollout.scores) != sorted(scorers):
        yield f"its scores are by {rollout.scores}, expected {scorers}"


def _gaps(results: list[int]) -> str:
    jumps = [f"{a} then {b}" for a, b in pairwise(results) if b != a + 1]
    return f"{results[:1]}…{results[-1:]} ({len(results)}) with {', '.join(jumps[:5]) or 'no jump'}"
