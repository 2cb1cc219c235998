"""Role calls as a trainer reads them, as rows: prompt, completion, sampling, usage, tokens, and what they may train.

Prompt parts are stored once by hash, messages and tokens once a segment; the parsed output is in the turn's step. What
no role could use is a turn too, in a segment of its own.
Storing them is in `turn_rows`, reading back in `segments`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from offing.core.model import Answer, Attempt, Message, Usage
from offing.core.role_call import CallOrigin, RejectedCompletion, SegmentPosition, attempt_as_json, rejections
from offing.core.tokens import SpanKind, TextSpan, TokenSpan, TokenTrace, token_spans
from offing.storage.pool import Connection
from offing.storage.token_columns import TokenColumns, columns_of
from offing.storage.turn_rows import TurnRow

MARK_DONE = """
    update turn set done = seq = any(%(seqs)s)
     where run_id = %(run)s and segment is not null and done <> (seq = any(%(seqs)s))
"""

UNTRAIN = """
    update turn set trainable = 'none', trainable_reason = 'the flow took it out of its context unseen'
     where run_id = %s and seq = any(%s)
"""


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


def trainable_as(answer: Answer) -> Trainable:
    """Text alone trains by imitation; token ids and log-probabilities are needed for more."""
    if not answer.messages:
        return Trainable("none", "the engine is not a language model")
    if answer.trace is not None:
        return Trainable("rl")
    if not answer.text:
        return Trainable("none", answer.untraced or "the engine wrote nothing")
    return Trainable("sft", answer.untraced or "the engine gives no token ids")


def turn_of(seq: int, origin: CallOrigin, answer: Answer, place: SegmentPosition | None) -> TurnRow:
    """The role call behind step `seq`.

    `place` None: it belongs to no segment, and its tokens are not kept. Raises BrokenRecord when its tokens contradict
    one another.
    """
    return _row(seq, origin, _accepted(answer if place else replace(answer, trace=None)), place)


def rejected_of(seq: int, origin: CallOrigin, rejection: RejectedCompletion, place: SegmentPosition) -> TurnRow:
    """A completion that no role could use, behind step `seq`. Raises BrokenRecord as `turn_of` does."""
    return _row(seq, origin, _rejected(rejection), place)


def _row(seq: int, origin: CallOrigin, said: _Said, place: SegmentPosition | None) -> TurnRow:
    trace = said.trace if place else None
    columns = {
        "seq": seq,
        "role": origin.role,
        "engine": origin.engine,
        "superstep": origin.superstep,
        **_told(said, place),
        **_placed(place),
        **_sampled(trace, place),
    }
    parts = {_sha256(part): part for message in said.messages for part in message.parts}
    return TurnRow(columns, _spans(seq, said), parts, _tokens(said, place))


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


def _rejected(rejection: RejectedCompletion) -> _Said:
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


def _told(said: _Said, place: SegmentPosition | None) -> dict[str, Any]:
    new = said.messages[place.kept_messages :] if place else said.messages
    return {
        "model": said.model,
        "prompt": [[m.role, [_sha256(part).hex() for part in m.parts]] for m in new],
        "completion": said.text,
        "sampling": said.sampling,
        "prompt_tokens": said.usage.prompt_tokens,
        "completion_tokens": said.usage.completion_tokens,
        "usd": str(said.usage.usd),
        "priced": said.usage.priced,
        "failed_attempts": [attempt_as_json(a) for a in said.attempts],
        "trainable": said.trainable.use,
        "trainable_reason": said.trainable.reason,
        "state_key": _key(*(f"{m.role}\0{m.text}" for m in said.messages)) if said.messages else "",
        "action_key": _key(said.action),
        "accepted": not said.problem,
        "attempt": said.attempt,
        "problem": said.problem,
    }


def _placed(place: SegmentPosition | None) -> dict[str, Any]:
    return {
        "segment": place.segment if place else None,
        "place": place.place if place else 0,
        "prompt_kept": place.kept_messages if place else 0,
        "fracture": place.fracture if place else None,
        "parent": place.parent if place else None,
        "parent_tokens": place.parent_tokens if place else None,
    }


def _tokens(said: _Said, place: SegmentPosition | None) -> TokenColumns | None:
    if said.trace is None or place is None:
        return None
    return columns_of(said.trace, said.trace.text if said.problem else said.text, place.kept_tokens)


def _sampled(trace: TokenTrace | None, place: SegmentPosition | None) -> dict[str, Any]:
    name, version = _named(trace.policy if trace else "")
    return {
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


def _spans(seq: int, said: _Said) -> list[dict[str, Any]]:
    return [
        {
            "seq": seq,
            "nth": nth,
            "kind": span.kind,
            "start_char": span.start,
            "end_char": span.end,
            "start_token": tokens.start if tokens else None,
            "end_token": tokens.end if tokens else None,
        }
        for nth, (span, tokens) in enumerate(zip(said.spans, _located(said), strict=True))
    ]


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
