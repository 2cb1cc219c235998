"""Role calls as a trainer reads them, written: prompt, completion, sampling, usage, tokens, and what they may train.

Prompt parts are stored once by hash, messages and tokens once a segment; the parsed output is in the turn's step.
Reading back is in `segments`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.model import Answer, Attempt
from offing.core.run import Fence
from offing.core.tokens import TokenSpan, token_spans
from offing.core.trajectory import Fracture
from offing.storage.pool import Connection
from offing.storage.token_columns import TokenColumns, columns_of

TURN = """
    insert into turn (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason, segment, place,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
                      checkpoint_id, state_key, action_key)
    values (%(run)s, %(seq)s, %(tenant)s, %(role)s, %(engine)s, %(model)s, %(prompt)s, %(completion)s, %(sampling)s,
            %(prompt_tokens)s, %(completion_tokens)s, %(usd)s, %(priced)s, %(failed_attempts)s, %(trainable)s,
            %(trainable_reason)s, %(segment)s, %(place)s, %(prompt_kept)s, %(prompt_offset)s, %(prompt_ids)s,
            %(completion_ids)s, %(logprobs)s, %(entropy)s, %(mask)s, %(policy)s,
            (select id from policy_version
              where tenant_id = %(tenant)s and name = %(policy_name)s and version = %(policy_version)s),
            %(weights_sha256)s, %(tokenizer_sha256)s, %(template_sha256)s, %(engine_build)s, %(finish)s,
            (select checkpoint_id from checkpoint
              where run_id = %(run)s and ns = '' and superstep < %(superstep)s order by superstep desc limit 1),
            %(state_key)s, %(action_key)s)
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
    if place is None:
        answer = replace(answer, trace=None)
    hashed = dict(sorted((_sha256(part), part) for message in answer.messages for part in message.parts))
    row: dict[str, Any] = {
        "run": fence.run,
        "seq": seq,
        "tenant": fence.tenant,
        **asdict(origin),
        "hashes": list(hashed),
        "bodies": list(hashed.values()),
        **_said(answer, place),
        **_placed(place),
        **_tokens(answer, place),
        **_spans(answer),
    }
    bare = place is None and not hashed and not answer.spans
    await connection.execute(TURN if bare else INSERT, row)


async def mark_done(connection: Connection, run: UUID, seqs: Sequence[int]) -> None:
    """Say with which turns the roles of a run ended it of their own accord, and that no other turn did."""
    await connection.execute(MARK_DONE, {"run": run, "seqs": list(seqs)})


async def untrain(connection: Connection, run: UUID, seqs: Sequence[int]) -> None:
    """Keep turns on record that are not to be trained."""
    await connection.execute(UNTRAIN, (run, list(seqs)))


def _said(answer: Answer, place: Place | None) -> dict[str, Any]:
    trainable = trainable_as(answer)
    new = answer.messages[place.kept_messages :] if place else answer.messages
    return {
        "model": answer.model,
        "prompt": _jsonb([[m.role, [_sha256(part).hex() for part in m.parts]] for m in new]),
        "completion": answer.text,
        "sampling": _jsonb(answer.sampling),
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        "usd": answer.usage.usd,
        "priced": answer.usage.priced,
        "failed_attempts": _jsonb([_attempt(a) for a in answer.attempts]),
        "trainable": trainable.use,
        "trainable_reason": trainable.reason,
        "state_key": _key(*(f"{m.role}\0{m.text}" for m in answer.messages)) if answer.messages else "",
        "action_key": _key(answer.output.model_dump_json()),
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


def _tokens(answer: Answer, place: Place | None) -> dict[str, Any]:
    trace = answer.trace if place else None
    columns = columns_of(trace, answer.text, place.kept_tokens) if trace and place else None
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


def _spans(answer: Answer) -> dict[str, Any]:
    spans, trace = answer.spans, answer.trace
    located: Sequence[TokenSpan | None] = [None] * len(spans)
    if trace is not None and spans:
        located = token_spans(answer.text, trace.pieces, spans)
    return {
        "kinds": [s.kind for s in spans],
        "starts": [s.start for s in spans],
        "ends": [s.end for s in spans],
        "token_starts": [s.start if s else None for s in located],
        "token_ends": [s.end if s else None for s in located],
    }


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


def _attempt(attempt: Attempt) -> dict[str, Any]:
    usage: dict[str, Any] = asdict(attempt.usage) | {"usd": str(attempt.usage.usd)}
    return asdict(attempt) | {"usage": usage}


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
