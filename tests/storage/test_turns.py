"""Turns as they are recorded and read back: tokens whole again, messages once a segment, nothing contradictory."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from offing.clock import new_id
from offing.core.model import Answer, Attempt, FailureKind, Message, Sampled, Usage
from offing.core.role_call import CallOrigin, RejectedCompletion, SegmentPosition, rejections
from offing.core.run import Fence
from offing.core.token_checks import BrokenRecord
from offing.core.tokens import SpanKind, TextSpan, TokenTrace
from offing.core.trajectory import Fracture
from offing.core.usage import UsageDelta
from offing.storage import segments, steps, turn_rows, turns
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.segments import StoredTurn
from offing.storage.token_columns import columns_of, floats_in, ids_in, mask_in, packed_mask
from tests.storage.builders import TERM, a_step, claimed


class Word(BaseModel):
    word: str


def a_trace(prompt: Sequence[int] = (1, 2, 3), text: str = "ab", **changes: object) -> TokenTrace:
    """One id a character, its code point, and an end of turn."""
    ids = (*(ord(c) for c in text), 0)
    trace = TokenTrace(
        prompt_ids=tuple(prompt),
        completion_ids=ids,
        logprobs=tuple(-0.1 * (n + 1) for n in range(len(ids))),
        pieces=(*(c.encode() for c in text), b""),
        policy="small@3",
        finish="stop",
        entropy=tuple(0.5 for _ in ids),
        tokenizer_sha256="t",
    )
    return replace(trace, **changes)  # type: ignore[arg-type]


def an_answer(
    trace: TokenTrace | None = None, *messages: Message, text: str = "ab", spans: tuple[TextSpan, ...] = ()
) -> Answer:
    said = messages or (Message("system", ("You plan.",)), Message("user", ("Why?",)))
    return Answer(Word(word=text), text, "small@3", said, {"temperature": 1.0}, trace=trace, spans=spans)


async def wrote(pool: Database, fence: Fence, answer: Answer, place: SegmentPosition | None) -> int:
    async with pool.transaction(fence.tenant) as connection:
        (step,) = await steps.append(connection, fence, TERM, [a_step()], UsageDelta())
        await turn_rows.insert(
            connection, fence, [turns.turn_of(step.seq, CallOrigin("planner", "policy", 1), answer, place)]
        )
    return step.seq


async def stored(pool: Database, fence: Fence) -> list[StoredTurn]:
    async with pool.transaction(fence.tenant) as connection:
        return await segments.turns_of(connection, fence.run)


async def test_turns_of_every_kind_are_stored_together_and_keep_apart(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    origin, prompt = CallOrigin("planner", "policy", 1), Message("user", ("Why?",))
    spans = (TextSpan(SpanKind.ACTION, 0, 2),)
    given = [
        (an_answer(a_trace((1,), "ab"), spans=spans), SegmentPosition(0, 0, Fracture.ROOT)),
        (replace(an_answer(), messages=()), None),
        (an_answer(None, prompt, text="cd"), SegmentPosition(1, 0, Fracture.COMPACTION, parent=0)),
        (
            an_answer(a_trace((5, 6), "efg"), prompt, text="efg", spans=(TextSpan(SpanKind.PLAN, 1, 3),)),
            SegmentPosition(2, 0),
        ),
    ]
    async with pool.transaction(fence.tenant) as connection:
        new = await steps.append(connection, fence, TERM, [a_step()] * len(given), UsageDelta())
        rows = [turns.turn_of(s.seq, origin, *one) for s, one in zip(new, given, strict=True)]
        await turn_rows.insert(connection, fence, rows)
    found = await stored(pool, fence)
    assert [t.completion for t in found] == ["ab", "ab", "cd", "efg"]
    ids = [list(t.tokens.completion_ids) if t.tokens else None for t in found]
    assert ids == [[97, 98, 0], None, None, [101, 102, 103, 0]]
    assert [[(s.kind, s.start, s.end) for s in t.spans] for t in found] == [
        [(SpanKind.ACTION, 0, 2)],
        [],
        [],
        [(SpanKind.PLAN, 1, 3)],
    ]


async def test_tokens_come_back_as_they_were_sampled(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    spans = (TextSpan(SpanKind.SWITCH, 0, 1), TextSpan(SpanKind.ACTION, 1, 2))
    await wrote(pool, fence, an_answer(a_trace(), spans=spans), SegmentPosition(0, 0, Fracture.ROOT))
    (turn,) = await stored(pool, fence)
    tokens = turn.tokens
    assert tokens is not None
    assert (list(tokens.prompt_ids), list(tokens.completion_ids)) == ([1, 2, 3], [97, 98, 0])
    assert list(tokens.logprobs) == pytest.approx([-0.1, -0.2, -0.3])
    assert (list(tokens.entropy or ()), tokens.mask) == ([0.5, 0.5, 0.5], b"\1\1\1")
    assert [(s.kind, s.start, s.end, s.start_token, s.end_token) for s in turn.spans] == [
        ("switch", 0, 1, 0, 1),
        ("action", 1, 2, 1, 3),
    ]
    assert (turn.trainable, turn.policy, turn.tokenizer_sha256, turn.finish) == ("rl", "small@3", "t", "stop")
    assert (turn.checkpoint_id, turn.done, turn.quarantine) == (None, False, "")
    assert [m.text for m in turn.messages] == ["You plan.", "Why?"]


async def test_a_segment_keeps_each_token_and_each_message_once(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = an_answer(a_trace())
    seq = await wrote(pool, fence, first, SegmentPosition(0, 0, Fracture.ROOT))
    said = Message("assistant", ("ab",), turn=seq)
    longer = (*first.messages, said, Message("user", ("And then?",)))
    second = an_answer(a_trace((1, 2, 3, 97, 98, 0, 9), "cd"), *longer, text="cd")
    await wrote(pool, fence, second, SegmentPosition(0, 1, kept_messages=3, kept_tokens=6))
    async with pool.transaction(LOCAL_TENANT) as connection:
        (segment,) = await segments.segments_of(connection, fence.run)
        row = await (
            await connection.execute(
                "select octet_length(prompt_ids), jsonb_array_length(prompt) from turn where place = 1"
            )
        ).fetchone()
        count, tails = await segments.tails_of(connection, fence.run)
    assert row == (3, 1)
    assert list(segment.ids or ()) == [1, 2, 3, 97, 98, 0, 9, 99, 100, 0]
    _, again = segment.turns
    assert again.tokens is not None
    assert list(again.tokens.prompt_ids) == [1, 2, 3, 97, 98, 0, 9]
    assert list(again.tokens.new_prompt_ids) == [9]
    assert again.messages == longer
    assert (count, tails["planner"].ids) == (1, (1, 2, 3, 97, 98, 0, 9, 99, 100, 0))
    assert (tails["planner"].messages, tails["planner"].completion) == (longer, "cd")


async def test_a_text_without_tokens_has_a_segment_and_trains_by_imitation(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    untraced = replace(an_answer(), untraced="the server gives no log-probabilities")
    await wrote(pool, fence, untraced, SegmentPosition(0, 0, Fracture.ROOT))
    (turn,) = await stored(pool, fence)
    assert (turn.tokens, turn.segment) == (None, 0)
    assert (turn.trainable, turn.trainable_reason) == ("sft", "the server gives no log-probabilities")


def a_rejection(text: str = "?!", nth: int = 1, prompt: Sequence[int] = (1, 2, 3)) -> RejectedCompletion:
    trace = a_trace(prompt, text, finish="length")
    sampled = Sampled("small@3", (Message("user", ("Why?",)),), {"temperature": 1.0, "seed": nth}, trace)
    usage = Usage(len(prompt), len(trace.completion_ids), Decimal("0.25"))
    attempt = Attempt(FailureKind.INVALID_OUTPUT, "Write a word.", text, 5, usage, sampled)
    return RejectedCompletion(attempt, sampled, nth)


async def rejected(pool: Database, fence: Fence, rejection: RejectedCompletion, place: SegmentPosition) -> int:
    async with pool.transaction(fence.tenant) as connection:
        (step,) = await steps.append(connection, fence, TERM, [a_step()], UsageDelta())
        row = turns.rejected_of(step.seq, CallOrigin("planner", "policy", 1), rejection, place)
        await turn_rows.insert(connection, fence, [row])
    return step.seq


async def test_what_no_role_could_use_is_kept_whole_and_says_so(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await rejected(pool, fence, a_rejection(), SegmentPosition(0, 0, Fracture.REJECTED))
    (turn,) = await stored(pool, fence)
    assert (turn.accepted, turn.attempt, turn.problem, turn.trainable) == (False, 1, "Write a word.", "rl")
    assert (turn.completion, turn.sampling["seed"], turn.finish) == ("?!", 1, "length")
    assert turn.tokens is not None
    assert list(turn.tokens.completion_ids) == [63, 33, 0]
    assert (list(turn.tokens.logprobs), turn.tokens.mask) == (pytest.approx([-0.1, -0.2, -0.3]), b"\1\1\1")
    assert list(turn.tokens.entropy or ()) == [0.5] * 3
    assert [(s.kind, s.start, s.end, s.start_token, s.end_token) for s in turn.spans] == [("text", 0, 2, 0, 3)]


async def test_an_end_of_turn_alone_and_a_nul_are_kept_as_sampled(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await rejected(pool, fence, a_rejection(""), SegmentPosition(0, 0, Fracture.REJECTED))
    await rejected(pool, fence, a_rejection("a\0", 2), SegmentPosition(1, 0, Fracture.REJECTED))
    empty, nul = await stored(pool, fence)
    assert [(t.completion, t.spans[0].end_token, t.accepted) for t in (empty, nul)] == [
        ("", 1, False),
        ("a\N{REPLACEMENT CHARACTER}", 3, False),
    ]
    assert nul.tokens is not None
    assert list(nul.tokens.completion_ids) == [97, 0, 0]


async def test_a_role_goes_on_from_what_it_could_use(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, Fracture.ROOT))
    await rejected(pool, fence, a_rejection(prompt=(1, 2, 9)), SegmentPosition(1, 0, Fracture.REJECTED, 0, 2))
    async with pool.transaction(LOCAL_TENANT) as connection:
        count, tails = await segments.tails_of(connection, fence.run)
        _, aside = await segments.segments_of(connection, fence.run)
    assert (count, tails["planner"].segment, tails["planner"].completion) == (2, 0, "ab")
    assert (aside.fracture, aside.parent, aside.parent_tokens) == (Fracture.REJECTED, 0, 2)


async def test_the_turns_of_a_call_share_what_it_used(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = a_rejection()
    passing = Attempt(FailureKind.TIMEOUT, "No whole answer.", usage=Usage(1, 1))
    used = first.attempt.usage + passing.usage + Usage(3, 2, Decimal("0.5"))
    answer = replace(an_answer(a_trace()), attempts=(first.attempt, passing), usage=used)
    assert rejections(answer.attempts) == [first]
    await rejected(pool, fence, first, SegmentPosition(0, 0, Fracture.REJECTED))
    await wrote(pool, fence, answer, SegmentPosition(1, 0, Fracture.ROOT))
    one, other = await stored(pool, fence)
    assert [(t.attempt, t.prompt_tokens, t.completion_tokens) for t in (one, other)] == [(1, 3, 3), (3, 4, 3)]
    assert [a["message"] for a in other.failed_attempts] == ["Write a word.", "No whole answer."]
    async with pool.transaction(LOCAL_TENANT) as connection:
        rows = await (await connection.execute("select usd from turn order by seq")).fetchall()
    assert rows == [(Decimal("0.25"),), (Decimal("0.5"),)]


async def test_a_segment_says_where_it_comes_from(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, Fracture.ROOT))
    await wrote(pool, fence, an_answer(a_trace((1, 2, 7))), SegmentPosition(1, 0, Fracture.MEMORY_EDIT, 0, 2))
    async with pool.transaction(LOCAL_TENANT) as connection:
        _, edited = await segments.segments_of(connection, fence.run)
    assert (edited.idx, edited.parent, edited.parent_tokens) == (1, 0, 2)
    assert edited.fracture is Fracture.MEMORY_EDIT
    assert list(edited.ids or ())[:3] == [1, 2, 7]


async def test_a_registered_version_is_found_by_its_name(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    version = new_id()
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(
            "insert into policy_version (id, tenant_id, name, version, kind, uri, sha256)"
            " values (%s, %s, 'small', 3, 'full', 'x', 'x')",
            (version, LOCAL_TENANT),
        )
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, Fracture.ROOT))
    await wrote(pool, fence, an_answer(a_trace(policy="served elsewhere")), SegmentPosition(1, 0, Fracture.ROOT))
    ours, other = await stored(pool, fence)
    assert (ours.policy_version_id, other.policy_version_id) == (version, None)


async def test_the_last_turns_are_marked_and_no_others(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, Fracture.ROOT))
    last = await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(1, 0, Fracture.WORKSPACE_RESET, 0, 3))
    for seqs in ([first], [last]):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await turns.mark_done(connection, fence.run, seqs)
    assert [turn.done for turn in await stored(pool, fence)] == [False, True]


BROKEN = {
    "logprobs": [{"logprobs": (-0.1, -0.2)}, {"logprobs": (-0.1, float("nan"), -1.0)}, {"logprobs": (0.1, -1.0, -1.0)},
                 {"logprobs": (-0.1, float("-inf"), -1.0)}],
    "entropy": [{"entropy": (0.1,)}, {"entropy": (0.1, 0.1, float("inf"))}, {"entropy": (0.1, 7e4, 0.1)},
                {"entropy": (0.1, -0.1, 0.1)}],
    "completion_ids": [{"completion_ids": (97, -98, 0)}, {"completion_ids": (97, 2**24, 0)},
                       {"pieces": (b"a", b"c", b"")}],
    "prompt_ids": [{"prompt_ids": (1, -1)}, {"prompt_ids": ()}],
    "pieces": [{"pieces": (b"ab",)}],
}  # fmt: skip


@pytest.mark.parametrize(("field", "change"), [(f, c) for f, changes in BROKEN.items() for c in changes])
def test_tokens_that_contradict_one_another_are_refused_by_name(field: str, change: dict[str, object]) -> None:
    with pytest.raises(BrokenRecord) as refused:
        columns_of(
            replace(a_trace(), **change),  # type: ignore[arg-type]
            "ab",
            0,
        )
    assert refused.value.field == field


async def test_a_refused_turn_leaves_no_step(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    with pytest.raises(BrokenRecord):
        await wrote(pool, fence, an_answer(a_trace(), text="another text"), SegmentPosition(0, 0, Fracture.ROOT))
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert [s.title for s in await steps.after(connection, fence.run, 1, 9)] == []


@given(st.lists(st.booleans(), max_size=40))
def test_a_mask_comes_back_whatever_its_length(mask: list[bool]) -> None:
    packed = packed_mask(mask)
    assert len(packed) == (len(mask) + 7) // 8
    assert [bool(b) for b in mask_in(packed, len(mask))] == mask


def test_a_mask_with_bits_beyond_its_ids_is_refused() -> None:
    with pytest.raises(BrokenRecord):
        mask_in(b"\x0f", 3)


def test_ids_take_three_bytes_log_probabilities_four_and_entropies_two() -> None:
    columns = columns_of(a_trace((258,), "a"), "a", 0)
    assert columns.prompt_ids == b"\x02\x01\x00"
    assert (columns.mask, len(columns.logprobs), len(columns.entropy or b"")) == (b"\x03", 8, 4)
    assert list(ids_in(columns.completion_ids)) == [97, 0]
    assert floats_in(columns.logprobs)[0] == pytest.approx(-0.1)
