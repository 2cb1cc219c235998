"""Role calls as a trainer reads them, written: prompt, completion, sampling, usage, tokens, and what they may train.

Prompt parts are stored once by hash, messages and tokens once a segment; the parsed output is in the turn's step. What
no role could use is a turn too, in a segment of its own.
Reading back is in `segments`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.model import Answer, Attempt, Message, Sampled, Usage
from offing.core.run import Fence
from offing.core.tokens import SpanKind, TextSpan, TokenSpan, TokenTrace, token_spans
from offing.core.trajectory import Fracture
from offing.storage.pool import Connection
from offing.storage.token_columns import TokenColumns, columns_of

TURN = """
    insert into turn (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason, segment, place,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
                      checkpoint_id, state_key, action_key, accepted, attempt, problem)
    values (%(run)s, %(seq)s, %(tenant)s, %(role)s, %(engine)s, %(model)s, %(prompt)s, %(completion)s, %(sampling)s,
            %(prompt_tokens)s, %(completion_tokens)s, %(usd)s, %(priced)s, %(failed_attempts)s, %(trainable)s,
            %(trainable_reason)s, %(segment)s, %(place)s, %(prompt_kept)s, %(prompt_offset)s, %(prompt_ids)s,
            %(completion_ids)s, %(logprobs)s, %(entropy)s, %(mask)s, %(policy)s,
            (select id from policy_version
              where tenant_id = %(tenant)s and name = %(policy_name)s and version = %(policy_version)s),
            %(weights_sha256)s, %(tokenizer_sha256)s, %(template_sha256)s, %(engine_build)s, %(finish)s,
            (select checkpoint_id from checkpoint
              where run_id = %(run)s and ns = '' and superstep < %(superstep)s order by superstep desc limit 1),
            %(state_key)s, %(action_key)s, %(accepted)s, %(attempt)s, %(problem)s)
"""

INSERT = f"""
    with part as (
      insert into text_part (tenant_id, sha256, body)
      select %(tenant)s, p.sha256, p.body from unnest(%(hashes)s::bytea[], %(bodies)s::text[]) as p(sha256, body)
      on conflict do nothing),
    opened as (
      insert into segment (run_id, idx, tenant_id, role, parent_idx, parent_tokens, fracture)
      select %(run)s, %(segment)s, %(tenant)s, %(role)s, %(parent)s, %(parent_tokens)s, %(fracture)s::text
       where %(fracture)s::text is not null),
    spanned as (
      insert into span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
      select %(run)s, %(seq)s, s.nth - 1, %(tenant)s, s.kind, s.start_char, s.end_char, s.start_token, s.end_token
        from unnest(%(kinds)s::text[], %(starts)s::integer[], %(ends)s::integer[],
                    %(token_starts)s::integer[], %(token_ends)s::integer[])
             with ordinality as s(kind, start_char, end_char, start_token, end_token, nth))
    {TURN}
"""
"""One statement a turn, because it is on the way of every role call."""

MARK_DONE = """
    update turn set done = seq = any(%(seqs)s)
     where run_id = %(run)s and segment is not null and done <> (seq = any(%(seqs)s))
"""


UNTRAIN = """
    update turn set trainable = 'none', trainable_reason = 'the flow took it out of its context unseen'
     where run_id = %s and seq = any(%s)
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who was asked, and when."""

    role: str
    engine: str
    superstep: int
    """Of the graph; a fork before the turn starts at the latest checkpoint before it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn stands among the segments of its run."""

    segment: int
    place: int
    """In its segment, from 0."""
    fracture: Fracture | None = None
    """Why a segment begins with it. None: it goes on."""
    parent: int | None = None
    """For a segment that begins: the role's one before. None: there is none."""
    parent_tokens: int | None = None
    """Tokens at the start that are the parent's. None: ids are not known, or there is no parent."""
    kept_messages: int = 0
    """Messages of the prompt that the segment has already."""
    kept_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Trainable:
    """What a turn may be trained for, and why not for more."""

    use: str
    """rl, sft or none."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Said:
    """What was asked and written, whether or not a role could use it."""

    model: str
    messages: tuple[Message, ...]
    text: str
    sampling: dict[str, Any]
    usage: Usage
    """But for attempts that are turns of their own."""
    trace: TokenTrace | None
    spans: tuple[TextSpan, ...]
    trainable: Trainable
    action: str
    """What is the same for the same decision."""
    attempts: tuple[Attempt, ...] = ()
    attempt: int = 1
    problem: str = ""
    """Why no role could use it. Empty: one did."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A completion that no role could use, as a turn of its own."""

    attempt: Attempt
    sampled: Sampled
    nth: int
    """Of its role call, from 1."""


def rejections(attempts: Sequence[Attempt]) -> list[Rejection]:
    """Those of a role call's failed attempts whose tokens are known."""
    return [Rejection(one, one.sampled, nth) for nth, one in enumerate(attempts, 1) if one.sampled]


def attempt_as_json(attempt: Attempt) -> dict[str, Any]:
    """An attempt as it is told beside the call that it belongs to; its tokens are in its turn."""
    usage: dict[str, Any] = asdict(attempt.usage) | {"usd": str(attempt.usage.usd)}
    return {name: getattr(attempt, name) for name in ("failure", "message", "text", "ms")} | {"usage": usage}


def trainable_as(answer: Answer) -> Trainable:
    """Text alone trains by imitation; token ids and log-probabilities are needed for more."""
    if not answer.messages:
        return Trainable("none", "the engine is not a language model")
    if answer.trace is not None:
        return Trainable("rl")
    if not answer.text:
        return Trainable("none", answer.untraced or "the engine wrote nothing")
    return Trainable("sft", answer.untraced or "the engine gives no token ids")


async def insert(
    connection: Connection, fence: Fence, seq: int, origin: Origin, answer: Answer, place: Place | None
) -> None:
    """Store the role call behind step `seq`, in the transaction that appended it.

    `place` None: it belongs to no segment, and its tokens are not kept. Raises BrokenRecord when its tokens contradict
    one another.
    """
    await _insert(connection, fence, seq, origin, _accepted(answer if place else replace(answer, trace=None)), place)


async def reject(
    connection: Connection, fence: Fence, seq: int, origin: Origin, rejection: Rejection, place: Place
) -> None:
    """Store a completion that no role could use behind step `seq`. Raises BrokenRecord as `insert` does."""
    await _insert(connection, fence, seq, origin, _rejected(rejection), place)


async def _insert(
    connection: Connection, fence: Fence, seq: int, origin: Origin, said: _Said, place: Place | None
) -> None:
    hashed = dict(sorted((_sha256(part), part) for message in said.messages for part in message.parts))
    row: dict[str, Any] = {
        "run": fence.run,
        "seq": seq,
        "tenant": fence.tenant,
        **asdict(origin),
        "hashes": list(hashed),
        "bodies": list(hashed.values()),
        **_told(said, place),
        **_placed(place),
        **_tokens(said, place),
        **_spans(said),
    }
    bare = place is None and not hashed and not said.spans
    await connection.execute(TURN if bare else INSERT, row)


async def mark_done(connection: Connection, run: UUID, seqs: Sequence[int]) -> None:
    """Say with which turns the roles of a run ended it of their own accord, and that no other turn did."""
    await connection.execute(MARK_DONE, {"run": run, "seqs": list(seqs)})


async def untrain(connection: Connection, run: UUID, seqs: Sequence[int]) -> None:
    """Keep turns on record that are not to be trained."""
    await connection.execute(UNTRAIN, (run, list(seqs)))


def _accepted(answer: Answer) -> _Said:
    return _Said(
        model=answer.model,
        messages=answer.messages,
        text=answer.text,
        sampling=answer.sampling,
        usage=answer.usage - sum((r.attempt.usage for r in rejections(answer.attempts)), Usage()),
        trace=answer.trace,
        spans=answer.spans,
        trainable=trainable_as(answer),
        action=answer.output.model_dump_json(),
        attempts=answer.attempts,
        attempt=len(answer.attempts) + 1,
    )


def _rejected(rejection: Rejection) -> _Said:
    """All of the completion is one span. The database holds no NUL, which is one reason why none could use it."""
    attempt, sampled = rejection.attempt, rejection.sampled
    trace, text = sampled.trace, sampled.trace.text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return _Said(
        model=sampled.model,
        messages=sampled.messages,
        text=text,
        sampling=sampled.sampling,
        usage=attempt.usage,
        trace=trace,
        spans=(TextSpan(SpanKind.TEXT, 0, len(text)),),
        trainable=Trainable("rl"),
        action=text,
        attempt=rejection.nth,
        problem=attempt.message or attempt.failure,
    )


def _told(said: _Said, place: Place | None) -> dict[str, Any]:
    new = said.messages[place.kept_messages :] if place else said.messages
    return {
        "model": said.model,
        "prompt": _jsonb([[m.role, [_sha256(part).hex() for part in m.parts]] for m in new]),
        "completion": said.text,
        "sampling": _jsonb(said.sampling),
        "prompt_tokens": said.usage.prompt_tokens,
        "completion_tokens": said.usage.completion_tokens,
        "usd": said.usage.usd,
        "priced": said.usage.priced,
        "failed_attempts": _jsonb([attempt_as_json(a) for a in said.attempts]),
        "trainable": said.trainable.use,
        "trainable_reason": said.trainable.reason,
        "state_key": _key(*(f"{m.role}\0{m.text}" for m in said.messages)) if said.messages else "",
        "action_key": _key(said.action),
        "accepted": not said.problem,
        "attempt": said.attempt,
        "problem": said.problem,
    }


def _placed(place: Place | None) -> dict[str, Any]:
    return {
        "segment": place.segment if place else None,
        "place": place.place if place else 0,
        "prompt_kept": place.kept_messages if place else 0,
        "fracture": place.fracture if place else None,
        "parent": place.parent if place else None,
        "parent_tokens": place.parent_tokens if place else None,
    }


def _tokens(said: _Said, place: Place | None) -> dict[str, Any]:
    trace = said.trace if place else None
    text = said.trace.text if said.problem and said.trace else said.text
    columns = columns_of(trace, text, place.kept_tokens) if trace and place else None
    name, version = _named(trace.policy if trace else "")
    return {
        **{field: getattr(columns, field, None) for field in TokenColumns.__slots__},
        "prompt_offset": place.kept_tokens if trace and place else None,
        "policy": trace.policy if trace else "",
        "policy_name": name,
        "policy_version": version,
        "weights_sha256": trace.weights_sha256 if trace else "",
        "tokenizer_sha256": trace.tokenizer_sha256 if trace else "",
        "template_sha256": trace.template_sha256 if trace else "",
        "engine_build": trace.engine_build if trace else "",
        "finish": trace.finish if trace else "",
    }


def _spans(said: _Said) -> dict[str, Any]:
    located = _located(said)
    return {
        "kinds": [s.kind for s in said.spans],
        "starts": [s.start for s in said.spans],
        "ends": [s.end for s in said.spans],
        "token_starts": [s.start if s else None for s in located],
        "token_ends": [s.end if s else None for s in located],
    }


def _located(said: _Said) -> Sequence[TokenSpan | None]:
    """What no role could use is one span, ids that decode to nothing included."""
    if said.trace is None or not said.spans:
        return [None] * len(said.spans)
    if said.problem:
        return [TokenSpan(SpanKind.TEXT, 0, len(said.trace.completion_ids))]
    return token_spans(said.text, said.trace.pieces, said.spans)


def _named(policy: str) -> tuple[str, int | None]:
    """Name and number of a registered version. None: it has no number, so it is none of ours."""
    name, _, version = policy.rpartition("@")
    known = version.isascii() and version.isdecimal() and len(version) < 10
    return (name, int(version)) if known else (policy, None)


def _key(*parts: str) -> str:
    """The same for the same parts, in whichever run."""
    return hashlib.blake2b("\0\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _sha256(part: str) -> bytes:
    return hashlib.sha256(part.encode()).digest()


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
