"""The training record of a run, read back: segments with whole ids, and their turns with prompt, completion and spans.

The only home of putting together what `turns` stores once a segment. Knows nothing of rewards, groups and formats.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.trajectory import Fracture, Tail
from offing.storage.pool import Connection
from offing.storage.token_columns import floats_in, halves_in, ids_in, mask_in

SEGMENTS = "select idx, role, parent_idx, parent_tokens, fracture from segment where run_id = %s order by idx"

TURN_COLUMNS = """
    t.seq, t.role, t.engine, t.model, t.segment, t.place, t.prompt, t.prompt_kept, t.completion, t.sampling,
    t.prompt_tokens, t.completion_tokens, t.failed_attempts, t.trainable, t.trainable_reason, t.prompt_offset,
    t.prompt_ids, t.completion_ids, t.logprobs, t.entropy, t.mask, t.policy, t.policy_version_id, t.weights_sha256,
    t.tokenizer_sha256, t.template_sha256, t.engine_build, t.finish, t.done, t.checkpoint_id, t.state_key,
    t.action_key, t.quarantine, t.accepted, t.attempt, t.problem
"""

TURNS = f"select t.run_id, {TURN_COLUMNS} from turn t where t.run_id = any(%s) order by t.run_id, t.seq"

LAST_SEGMENTS = f"""
    select {TURN_COLUMNS} from turn t
      join (select distinct on (role) role, idx from segment
             where run_id = %(run)s and fracture <> 'rejected' order by role, idx desc) as latest
        on t.segment = latest.idx
     where t.run_id = %(run)s order by t.seq
"""

COUNT = "select coalesce(max(idx) + 1, 0) from segment where run_id = %s"

SPANS = """
    select run_id, seq, kind, start_char, end_char, start_token, end_token from span
     where run_id = any(%s) order by run_id, seq, nth
"""

PARTS = """
    select encode(sha256, 'hex'), body from text_part
     where tenant_id = (select tenant_id from run where id = %s) and sha256 = any(%s)
"""


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """What a stretch of a completion is. Ends are excluded."""

    kind: str
    start: int
    """Code points of the completion."""
    end: int
    start_token: int | None
    """Completion ids. None: ids are not known. Equal to `end_token`: no token begins in it."""
    end_token: int | None


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """A turn's ids in its segment, and what is known of each completion id."""

    whole: "array[int]"
    """Ids of the whole segment, shared by its turns; not to be changed."""
    offset: int
    """Where what this turn's prompt adds begins."""
    start: int
    """Where the completion begins."""
    end: int
    """Where it ends, excluded."""
    logprobs: "array[float]"
    """float32, an entry a completion id."""
    entropy: "array[float] | None"
    """Nats, stored as float16. None: the engine did not say."""
    mask: bytes
    """0 or 1 a completion id; 1: sampled by the policy."""

    @property
    def prompt_ids(self) -> "array[int]":
        """The whole prompt, what earlier turns of the segment gave included."""
        return self.whole[: self.start]

    @property
    def new_prompt_ids(self) -> "array[int]":
        return self.whole[self.offset : self.start]

    @property
    def completion_ids(self) -> "array[int]":
        return self.whole[self.start : self.end]


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A role call as it was recorded."""

    seq: int
    role: str
    engine: str
    model: str
    segment: int | None
    """None: the engine wrote no text."""
    place: int
    """In its segment, from 0."""
    messages: tuple[Message, ...]
    """The whole prompt, as rendered."""
    completion: str
    sampling: dict[str, Any]
    """As sent."""
    prompt_tokens: int
    """By the engine's count, of all attempts that are no turns of their own."""
    completion_tokens: int
    failed_attempts: tuple[dict[str, Any], ...]
    trainable: str
    """rl, sft or none."""
    trainable_reason: str
    """Why not for more."""
    tokens: TurnTokens | None
    """None: ids are not known."""
    spans: tuple[StoredSpan, ...]
    policy: str
    """NAME@VERSION. Empty: not a policy's."""
    policy_version_id: UUID | None
    """None: not registered here."""
    weights_sha256: str
    tokenizer_sha256: str
    template_sha256: str
    engine_build: str
    finish: str
    done: bool
    """With it the role's part in the run ended, of the run's own accord."""
    checkpoint_id: str | None
    """Where a fork before this turn starts. None: none was kept."""
    state_key: str
    action_key: str
    quarantine: str
    """Why it may not be trained although it was recorded as trainable. Empty: it may."""
    accepted: bool = True
    """False: no role could use it; it is never trained as accepted."""
    attempt: int = 1
    """Of its role call."""
    problem: str = ""
    """Why no role could use it. Empty: one did."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """Turns of one role whose context only grows."""

    idx: int
    role: str
    parent: int | None
    """The role's segment before. None: its first."""
    parent_tokens: int | None
    fracture: Fracture
    turns: tuple[StoredTurn, ...]

    @property
    def ids(self) -> "array[int] | None":
        """Prompts and completions of all turns, each token once. None: not known."""
        return self.turns[0].tokens.whole if self.turns and self.turns[0].tokens else None


@dataclass(slots=True)
class _Growing:
    """A segment as far as it has been read."""

    messages: tuple[Message, ...] = ()
    completion: str = ""
    seq: int = 0
    ids: "array[int]" = field(default_factory=lambda: array("i"))


async def turns_of(connection: Connection, run: UUID) -> list[StoredTurn]:
    """All turns of a run in the order of their steps, those of engines without text included. Empty: there are none."""
    return (await turns_by_run(connection, [run])).get(run, [])


async def turns_by_run(connection: Connection, runs: Sequence[UUID]) -> dict[UUID, list[StoredTurn]]:
    """The same of several runs of a tenant, read at once. A run without turns is not there."""
    rows: dict[UUID, list[tuple[Any, ...]]] = {}
    for run, *row in await (await connection.execute(TURNS, (list(runs),))).fetchall():
        rows.setdefault(run, []).append(tuple(row))
    spans = await _spans(connection, list(rows))
    bodies = await _bodies(connection, [row for found in rows.values() for row in found], next(iter(rows), None))
    return {run: _turns(found, bodies, spans.get(run, {})) for run, found in rows.items()}


async def segments_of(connection: Connection, run: UUID) -> list[StoredSegment]:
    """All segments of a run with their turns, in the order in which they began."""
    by_segment: dict[int, list[StoredTurn]] = {}
    for turn in await turns_of(connection, run):
        if turn.segment is not None:
            by_segment.setdefault(turn.segment, []).append(turn)
    rows = await (await connection.execute(SEGMENTS, (run,))).fetchall()
    return [
        StoredSegment(idx, role, parent, shared, Fracture(fracture), tuple(by_segment.get(idx, ())))
        for idx, role, parent, shared, fracture in rows
    ]


async def tails_of(connection: Connection, run: UUID) -> tuple[int, dict[str, Tail]]:
    """The number of the next segment of a run, and where each role's latest one ends."""
    row = await (await connection.execute(COUNT, (run,))).fetchone()
    rows = await (await connection.execute(LAST_SEGMENTS, {"run": run})).fetchall()
    turns = _turns(rows, await _bodies(connection, rows, run), {})
    return (row[0] if row else 0), {turn.role: _tail(turn) for turn in turns}


def _tail(turn: StoredTurn) -> Tail:
    tokens = turn.tokens
    ids = tuple(tokens.whole[: tokens.end]) if tokens else None
    return Tail(turn.segment or 0, turn.place, turn.seq, turn.messages, turn.completion, ids)


async def _spans(connection: Connection, runs: Sequence[UUID]) -> dict[UUID, dict[int, list[StoredSpan]]]:
    """By run and seq."""
    spans: dict[UUID, dict[int, list[StoredSpan]]] = {}
    for run, seq, *span in await (await connection.execute(SPANS, (list(runs),))).fetchall():
        spans.setdefault(run, {}).setdefault(seq, []).append(StoredSpan(*span))
    return spans


def _turns(
    rows: Sequence[tuple[Any, ...]], bodies: Mapping[str, str], spans: Mapping[int, Sequence[StoredSpan]]
) -> list[StoredTurn]:
    """Rows of `TURN_COLUMNS` of a run with all turns of each segment that occurs, by seq."""
    segments: dict[int, _Growing] = {}
    return [_turn(row, segments, bodies, tuple(spans.get(row[0], ()))) for row in rows]


async def _bodies(connection: Connection, rows: Sequence[tuple[Any, ...]], run: UUID | None) -> dict[str, str]:
    """What the rows' prompts are made of, by hash. `run`: any of theirs, whose tenant is that of all."""
    if not rows:
        return {}
    wanted = {part for row in rows for _, parts in row[6] for part in parts}
    hashes = [bytes.fromhex(part) for part in wanted]
    return dict(await (await connection.execute(PARTS, (run, hashes))).fetchall())


def _turn(
    row: tuple[Any, ...], segments: dict[int, _Growing], bodies: Mapping[str, str], spans: tuple[StoredSpan, ...]
) -> StoredTurn:
    seq, role, engine, model, segment, place, prompt, kept, completion, sampling = row[:10]
    growing = _Growing() if segment is None else segments.setdefault(segment, _Growing())
    said = (*growing.messages, Message("assistant", (growing.completion,), turn=growing.seq)) if kept else ()
    new = tuple(Message(who, tuple(bodies[part] for part in parts)) for who, parts in prompt)
    growing.messages, growing.completion, growing.seq = (*said[:kept], *new), completion, seq
    tokens = _tokens(row[15:21], growing.ids)
    return StoredTurn(
        *(seq, role, engine, model, segment, place, growing.messages, completion, sampling),
        *(row[10], row[11], tuple(row[12]), row[13], row[14], tokens, spans),
        *row[21:],
    )


def _tokens(columns: Sequence[Any], whole: "array[int]") -> TurnTokens | None:
    """A turn's tokens; what it adds is appended to the `whole` of its segment."""
    offset, prompt, completion, logprobs, entropy, mask = columns
    if offset is None:
        return None
    whole.extend(ids_in(prompt))
    start = len(whole)
    whole.extend(ids_in(completion))
    flags = mask_in(mask, len(whole) - start)
    known = None if entropy is None else halves_in(entropy)
    return TurnTokens(whole, offset, start, len(whole), floats_in(logprobs), known, flags)
