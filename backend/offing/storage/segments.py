"""The training record of a run, read from its rows.

It consists of segments with complete token ids, and their role calls with prompt, completion and
spans. Tokens and messages are stored once per segment; this module assembles them.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.model import Message
from offing.core.trajectory import BoundaryReason, SegmentTail
from offing.storage.pool import Connection
from offing.storage.token_columns import unpack_floats, unpack_halves, unpack_ids, unpack_mask

MAX_SEQ = 2**63 - 1
"""The last possible number of a step."""

LIST_SEGMENTS = (
    "select idx, role, parent_idx, parent_tokens, boundary_reason from segment where run_id = %s order by idx"
)

ROLE_CALL_COLUMNS = """
    t.seq, t.role, t.engine, t.model, t.segment_idx, t.position, t.prompt, t.prompt_kept, t.completion, t.sampling,
    t.prompt_tokens, t.completion_tokens, t.failed_attempts, t.trainable, t.trainable_reason, t.prompt_offset,
    t.prompt_ids, t.completion_ids, t.logprobs, t.entropy, t.loss_mask, t.policy, t.policy_version_id, t.weights_sha256,
    t.tokenizer_sha256, t.template_sha256, t.engine_build, t.finish_reason, t.is_final, t.checkpoint_id, t.state_key,
    t.action_key, t.quarantine, t.is_accepted, t.attempt, t.problem, t.cached_prompt_tokens, t.reasoning_tokens
"""

LIST_ROLE_CALLS = (
    f"select t.run_id, {ROLE_CALL_COLUMNS} from role_call t where t.run_id = any(%s) order by t.run_id, t.seq"
)

LIST_ROLE_CALL_PAGE = f"""
    with page as (
      select seq, segment_idx from role_call where run_id = %(run)s and seq > %(after)s order by seq limit %(limit)s)
    select {ROLE_CALL_COLUMNS} from role_call t
     where t.run_id = %(run)s and t.seq <= (select max(seq) from page)
       and (t.seq > %(after)s or t.segment_idx in (select segment_idx from page))
     order by t.seq
"""
"""The role calls of a page, and the earlier ones of their segments, whose prompts they continue."""

HAS_LATER_ROLE_CALL = "select exists (select from role_call where run_id = %s and seq > %s)"

LIST_LAST_SEGMENTS = f"""
    select {ROLE_CALL_COLUMNS} from role_call t
      join (select distinct on (role) role, idx from segment
             where run_id = %(run)s and boundary_reason <> 'rejected' order by role, idx desc) as latest
        on t.segment_idx = latest.idx
     where t.run_id = %(run)s order by t.seq
"""

NEXT_SEGMENT_IDX = "select coalesce(max(idx) + 1, 0) from segment where run_id = %s"

LIST_SPANS = """
    select run_id, seq, kind, start_char, end_char, start_token, end_token from completion_span
     where run_id = any(%s) and seq > %s and seq <= %s order by run_id, seq, nth
"""

LIST_PROMPT_PARTS = """
    select encode(sha256, 'hex'), body from text_part
     where tenant_id = (select tenant_id from run where id = %s) and sha256 = any(%s)
"""


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """The kind of a range of a completion. Ends are exclusive."""

    kind: str
    start: int
    """Code points of the completion."""
    end: int
    start_token: int | None
    """Token indices of the completion. `None` means that the ids are not known. Equal to
    `end_token` if no token begins in the range.
    """
    end_token: int | None


@dataclass(frozen=True, slots=True)
class RoleCallTokens:
    """The token ids of a role call within its segment, with the values of each completion token."""

    segment_ids: "array[int]"
    """Token ids of the whole segment, shared by its role calls. They must not be changed."""
    offset: int
    """Where the new part of the prompt begins."""
    start: int
    """Where the completion begins."""
    end: int
    """Where the completion ends, exclusive."""
    logprobs: "array[float]"
    """float32, one entry per completion token."""
    entropy: "array[float] | None"
    """In nats, stored as float16. `None` means that the engine did not return it."""
    loss_mask: bytes
    """0 or 1 per completion token. 1 means that the policy sampled it."""

    @property
    def prompt_ids(self) -> "array[int]":
        """Token ids of the whole prompt, including those of earlier role calls of the segment."""
        return self.segment_ids[: self.start]

    @property
    def new_prompt_ids(self) -> "array[int]":
        return self.segment_ids[self.offset : self.start]

    @property
    def completion_ids(self) -> "array[int]":
        return self.segment_ids[self.start : self.end]


@dataclass(frozen=True, slots=True)
class StoredRoleCall:
    """A role call as recorded."""

    seq: int
    role: str
    engine: str
    model: str
    segment_idx: int | None
    """`None` means that the engine wrote no text."""
    position: int
    """Position in the segment, from 0."""
    messages: tuple[Message, ...]
    """The whole prompt as rendered."""
    completion: str
    sampling: dict[str, Any]
    """The sampling parameters of the request."""
    prompt_tokens: int
    """As counted by the engine, for all attempts that are not recorded as separate role calls."""
    completion_tokens: int
    failed_attempts: tuple[dict[str, Any], ...]
    trainable: str
    """`rl`, `sft` or `none`."""
    trainable_reason: str
    """Why the role call cannot be used for more."""
    tokens: RoleCallTokens | None
    """`None` means that the token ids are not known."""
    spans: tuple[StoredSpan, ...]
    policy: str
    """NAME@VERSION. Empty if no policy sampled the completion."""
    policy_version_id: UUID | None
    """`None` means that the version is not registered in this installation."""
    weights_sha256: str
    tokenizer_sha256: str
    template_sha256: str
    engine_build: str
    finish_reason: str
    is_final: bool
    """The role's last call in a run that ended on its own."""
    checkpoint_id: str | None
    """The checkpoint from which a fork before this role call starts. `None` means that there is
    none.
    """
    state_key: str
    action_key: str
    quarantine: str
    """Why the role call must not be trained on although it was recorded as trainable. Empty if it
    may be.
    """
    is_accepted: bool = True
    """False if the role rejected the completion; it is then never trained on as accepted."""
    attempt: int = 1
    """The number of the attempt within its role call."""
    problem: str = ""
    """Why the completion was rejected. Empty if it was accepted."""
    cached_prompt_tokens: int = 0
    """The part of `prompt_tokens` from the provider's cache. 0 also means unknown."""
    reasoning_tokens: int = 0
    """The part of `completion_tokens` for thinking. 0 also means unknown."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """Role calls of one role whose context only grows."""

    idx: int
    role: str
    parent_idx: int | None
    """The role's previous segment. `None` means that this is its first."""
    parent_tokens: int | None
    boundary_reason: BoundaryReason
    role_calls: tuple[StoredRoleCall, ...]

    @property
    def token_ids(self) -> "array[int] | None":
        """Token ids of the segment: prompts and completions of all role calls, each token once.

        `None` if they are not known.
        """
        return self.role_calls[0].tokens.segment_ids if self.role_calls and self.role_calls[0].tokens else None


@dataclass(slots=True)
class _PartialSegment:
    """A segment of which only the first role calls have been read."""

    messages: tuple[Message, ...] = ()
    completion: str = ""
    seq: int = 0
    ids: "array[int]" = field(default_factory=lambda: array("i"))


async def read_role_calls(connection: Connection, run_id: UUID) -> list[StoredRoleCall]:
    """Return all role calls of a run in the order of their steps.

    Role calls of engines without text are included.
    """
    return (await read_role_calls_by_run(connection, [run_id])).get(run_id, [])


async def read_role_calls_by_run(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, list[StoredRoleCall]]:
    """Return the role calls of several runs of a tenant. Runs without role calls are left out."""
    rows: dict[UUID, list[tuple[Any, ...]]] = {}
    for run, *row in await (await connection.execute(LIST_ROLE_CALLS, (list(run_ids),))).fetchall():
        rows.setdefault(run, []).append(tuple(row))
    spans = await _read_spans(connection, list(rows))
    bodies = await _read_prompt_parts(
        connection, [row for run_rows in rows.values() for row in run_rows], next(iter(rows), None)
    )
    return {run: _build_role_calls(run_rows, bodies, spans.get(run, {})) for run, run_rows in rows.items()}


async def read_role_call_page(
    connection: Connection, run_id: UUID, after: int, limit: int
) -> tuple[list[StoredRoleCall], int | None]:
    """Return at most `limit` role calls of a run after step `after`, and the step to continue from.

    `None` means that these were the last. What is read does not depend on the other segments of the run.
    """
    values = {"run": run_id, "after": after, "limit": limit}
    rows = await (await connection.execute(LIST_ROLE_CALL_PAGE, values)).fetchall()
    if not rows:
        return [], None
    last = rows[-1][0]
    spans = (await _read_spans(connection, [run_id], after, last)).get(run_id, {})
    role_calls = _build_role_calls(rows, await _read_prompt_parts(connection, rows, run_id), spans)
    row = await (await connection.execute(HAS_LATER_ROLE_CALL, (run_id, last))).fetchone()
    return [call for call in role_calls if call.seq > after], last if row and row[0] else None


async def read_segments(connection: Connection, run_id: UUID) -> list[StoredSegment]:
    """Return all segments of a run with their role calls, in the order in which they began."""
    by_segment: dict[int, list[StoredRoleCall]] = {}
    for turn in await read_role_calls(connection, run_id):
        if turn.segment_idx is not None:
            by_segment.setdefault(turn.segment_idx, []).append(turn)
    rows = await (await connection.execute(LIST_SEGMENTS, (run_id,))).fetchall()
    return [
        StoredSegment(idx, role, parent, shared, BoundaryReason(boundary_reason), tuple(by_segment.get(idx, ())))
        for idx, role, parent, shared, boundary_reason in rows
    ]


async def read_segment_tails(connection: Connection, run_id: UUID) -> tuple[int, dict[str, SegmentTail]]:
    """Return the number of the next segment of a run, and the segment tail of each role."""
    row = await (await connection.execute(NEXT_SEGMENT_IDX, (run_id,))).fetchone()
    rows = await (await connection.execute(LIST_LAST_SEGMENTS, {"run": run_id})).fetchall()
    turns = _build_role_calls(rows, await _read_prompt_parts(connection, rows, run_id), {})
    return (row[0] if row else 0), {turn.role: _tail_of_call(turn) for turn in turns}


def _tail_of_call(role_call: StoredRoleCall) -> SegmentTail:
    tokens = role_call.tokens
    ids = tuple(tokens.segment_ids[: tokens.end]) if tokens else None
    return SegmentTail(
        role_call.segment_idx or 0, role_call.position, role_call.seq, role_call.messages, role_call.completion, ids
    )


async def _read_spans(
    connection: Connection, run_ids: Sequence[UUID], after: int = 0, last: int = MAX_SEQ
) -> dict[UUID, dict[int, list[StoredSpan]]]:
    """Read the completion spans of the steps from `after`, exclusive, to `last`, by run and seq."""
    spans: dict[UUID, dict[int, list[StoredSpan]]] = {}
    for run, seq, *span in await (await connection.execute(LIST_SPANS, (list(run_ids), after, last))).fetchall():
        spans.setdefault(run, {}).setdefault(seq, []).append(StoredSpan(*span))
    return spans


def _build_role_calls(
    rows: Sequence[tuple[Any, ...]], part_bodies: Mapping[str, str], spans: Mapping[int, Sequence[StoredSpan]]
) -> list[StoredRoleCall]:
    """Convert rows of `ROLE_CALL_COLUMNS` of one run.

    The rows must contain all role calls of each of their segments, ordered by seq.
    """
    segments: dict[int, _PartialSegment] = {}
    return [_build_role_call(row, segments, part_bodies, tuple(spans.get(row[0], ()))) for row in rows]


async def _read_prompt_parts(
    connection: Connection, rows: Sequence[tuple[Any, ...]], run_id: UUID | None
) -> dict[str, str]:
    """Read the prompt parts of these rows, by hash.

    `run_id` is any of their runs; all of them belong to its tenant.
    """
    if not rows:
        return {}
    part_hashes = {part for row in rows for _, parts in row[6] for part in parts}
    hashes = [bytes.fromhex(part) for part in part_hashes]
    return dict(await (await connection.execute(LIST_PROMPT_PARTS, (run_id, hashes))).fetchall())


def _build_role_call(
    row: tuple[Any, ...],
    segments: dict[int, _PartialSegment],
    part_bodies: Mapping[str, str],
    spans: tuple[StoredSpan, ...],
) -> StoredRoleCall:
    seq, role, engine, model, segment, position, prompt, continued_count, completion, sampling = row[:10]
    growing = _PartialSegment() if segment is None else segments.setdefault(segment, _PartialSegment())
    messages = (
        (*growing.messages, Message("assistant", (growing.completion,), turn=growing.seq)) if continued_count else ()
    )
    new = tuple(Message(who, tuple(part_bodies[part] for part in parts)) for who, parts in prompt)
    growing.messages, growing.completion, growing.seq = (*messages[:continued_count], *new), completion, seq
    tokens = _build_tokens(row[15:21], growing.ids)
    return StoredRoleCall(
        *(seq, role, engine, model, segment, position, growing.messages, completion, sampling),
        *(row[10], row[11], tuple(row[12]), row[13], row[14], tokens, spans),
        *row[21:],
    )


def _build_tokens(columns: Sequence[Any], segment_ids: "array[int]") -> RoleCallTokens | None:
    """Build the tokens of a role call and append its new ids to `segment_ids`."""
    offset, prompt, completion, logprobs, entropy, mask = columns
    if offset is None:
        return None
    segment_ids.extend(unpack_ids(prompt))
    start = len(segment_ids)
    segment_ids.extend(unpack_ids(completion))
    flags = unpack_mask(mask, len(segment_ids) - start)
    entropies = None if entropy is None else unpack_halves(entropy)
    return RoleCallTokens(segment_ids, offset, start, len(segment_ids), unpack_floats(logprobs), entropies, flags)
