"""Turns as they are recorded and read back: tokens whole again, messages once a segment, nothing contradictory."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from offing.clock import new_id
from offing.core.model import EngineResponse, FailedAttempt, FailureKind, Message, SampledCompletion, Usage
from offing.core.role_call import CallOrigin, RejectedCompletion, SegmentPosition, extract_rejected_completions
from offing.core.run import FencingToken
from offing.core.token_checks import CorruptTokensError
from offing.core.tokens import CompletionSpan, SpanKind, TokenTrace
from offing.core.trajectory import BoundaryReason
from offing.core.usage import UsageDelta
from offing.storage import role_calls, run_summaries, segments, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.run_summaries import TokenDetails
from offing.storage.segments import StoredRoleCall
from offing.storage.token_columns import build_token_columns, pack_mask, unpack_floats, unpack_ids, unpack_mask
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
        token_bytes=(*(c.encode() for c in text), b""),
        policy="small@3",
        finish_reason="stop",
        entropy=tuple(0.5 for _ in ids),
        tokenizer_sha256="t",
    )
    return replace(trace, **changes)  # type: ignore[arg-type]


def an_answer(
    trace: TokenTrace | None = None, *messages: Message, text: str = "ab", spans: tuple[CompletionSpan, ...] = ()
) -> EngineResponse:
    message = messages or (Message("system", ("You plan.",)), Message("user", ("Why?",)))
    return EngineResponse(Word(word=text), text, "small@3", message, {"temperature": 1.0}, trace=trace, spans=spans)


async def wrote(pool: Database, fence: FencingToken, answer: EngineResponse, position: SegmentPosition | None) -> int:
    async with pool.transaction(fence.tenant_id) as connection:
        (step,) = await steps.append_steps(connection, fence, TERM, [a_step()], UsageDelta())
        await role_calls.insert_role_calls(
            connection,
            fence,
            [role_calls.build_role_call_row(step.seq, CallOrigin("planner", "policy", 1), answer, position)],
        )
    return step.seq


async def stored(pool: Database, fence: FencingToken) -> list[StoredRoleCall]:
    async with pool.transaction(fence.tenant_id) as connection:
        return await segments.read_role_calls(connection, fence.run_id)


async def test_turns_of_every_kind_are_stored_together_and_keep_apart(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    origin, prompt = CallOrigin("planner", "policy", 1), Message("user", ("Why?",))
    spans = (CompletionSpan(SpanKind.ACTION, 0, 2),)
    inputs = [
        (an_answer(a_trace((1,), "ab"), spans=spans), SegmentPosition(0, 0, BoundaryReason.ROOT)),
        (replace(an_answer(), messages=()), None),
        (an_answer(None, prompt, text="cd"), SegmentPosition(1, 0, BoundaryReason.COMPACTION, parent_idx=0)),
        (
            an_answer(a_trace((5, 6), "efg"), prompt, text="efg", spans=(CompletionSpan(SpanKind.PLAN, 1, 3),)),
            SegmentPosition(2, 0),
        ),
    ]
    async with pool.transaction(fence.tenant_id) as connection:
        new = await steps.append_steps(connection, fence, TERM, [a_step()] * len(inputs), UsageDelta())
        rows = [role_calls.build_role_call_row(s.seq, origin, *one) for s, one in zip(new, inputs, strict=True)]
        await role_calls.insert_role_calls(connection, fence, rows)
    result = await stored(pool, fence)
    assert [t.completion for t in result] == ["ab", "ab", "cd", "efg"]
    ids = [list(t.tokens.completion_ids) if t.tokens else None for t in result]
    assert ids == [[97, 98, 0], None, None, [101, 102, 103, 0]]
    assert [[(s.kind, s.start, s.end) for s in t.spans] for t in result] == [
        [(SpanKind.ACTION, 0, 2)],
        [],
        [],
        [(SpanKind.PLAN, 1, 3)],
    ]


async def test_tokens_come_back_as_they_were_sampled(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    spans = (CompletionSpan(SpanKind.SWITCH, 0, 1), CompletionSpan(SpanKind.ACTION, 1, 2))
    await wrote(pool, fence, an_answer(a_trace(), spans=spans), SegmentPosition(0, 0, BoundaryReason.ROOT))
    (turn,) = await stored(pool, fence)
    tokens = turn.tokens
    assert tokens is not None
    assert (list(tokens.prompt_ids), list(tokens.completion_ids)) == ([1, 2, 3], [97, 98, 0])
    assert list(tokens.logprobs) == pytest.approx([-0.1, -0.2, -0.3])
    assert (list(tokens.entropy or ()), tokens.loss_mask) == ([0.5, 0.5, 0.5], b"\1\1\1")
    assert [(s.kind, s.start, s.end, s.start_token, s.end_token) for s in turn.spans] == [
        ("switch", 0, 1, 0, 1),
        ("action", 1, 2, 1, 3),
    ]
    assert (turn.trainable, turn.policy, turn.tokenizer_sha256, turn.finish_reason) == ("rl", "small@3", "t", "stop")
    assert (turn.checkpoint_id, turn.is_final, turn.quarantine) == (None, False, "")
    assert [m.text for m in turn.messages] == ["You plan.", "Why?"]


async def test_a_segment_keeps_each_token_and_each_message_once(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = an_answer(a_trace())
    seq = await wrote(pool, fence, first, SegmentPosition(0, 0, BoundaryReason.ROOT))
    text = Message("assistant", ("ab",), turn=seq)
    longer = (*first.messages, text, Message("user", ("And then?",)))
    second = an_answer(a_trace((1, 2, 3, 97, 98, 0, 9), "cd"), *longer, text="cd")
    await wrote(pool, fence, second, SegmentPosition(0, 1, kept_messages=3, kept_tokens=6))
    async with pool.transaction(LOCAL_TENANT) as connection:
        (segment,) = await segments.read_segments(connection, fence.run_id)
        row = await (
            await connection.execute(
                "select octet_length(prompt_ids), jsonb_array_length(prompt) from role_call where position = 1"
            )
        ).fetchone()
        count, tails = await segments.read_segment_tails(connection, fence.run_id)
    assert row == (3, 1)
    assert list(segment.token_ids or ()) == [1, 2, 3, 97, 98, 0, 9, 99, 100, 0]
    _, again = segment.role_calls
    assert again.tokens is not None
    assert list(again.tokens.prompt_ids) == [1, 2, 3, 97, 98, 0, 9]
    assert list(again.tokens.new_prompt_ids) == [9]
    assert again.messages == longer
    assert (count, tails["planner"].token_ids) == (1, (1, 2, 3, 97, 98, 0, 9, 99, 100, 0))
    assert (tails["planner"].messages, tails["planner"].completion) == (longer, "cd")


async def test_a_text_without_tokens_has_a_segment_and_trains_by_imitation(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    untraced = replace(an_answer(), missing_trace_reason="the server does not return logprobs")
    await wrote(pool, fence, untraced, SegmentPosition(0, 0, BoundaryReason.ROOT))
    (turn,) = await stored(pool, fence)
    assert (turn.tokens, turn.segment_idx) == (None, 0)
    assert (turn.trainable, turn.trainable_reason) == ("sft", "the server does not return logprobs")


def a_rejection(text: str = "?!", nth: int = 1, prompt: Sequence[int] = (1, 2, 3)) -> RejectedCompletion:
    trace = a_trace(prompt, text, finish_reason="length")
    sampled = SampledCompletion("small@3", (Message("user", ("Why?",)),), {"temperature": 1.0, "seed": nth}, trace)
    usage = Usage(len(prompt), len(trace.completion_ids), Decimal("0.25"))
    attempt = FailedAttempt(FailureKind.INVALID_OUTPUT, "Write a word.", text, 5, usage, sampled)
    return RejectedCompletion(attempt, sampled, nth)


async def rejected(
    pool: Database, fence: FencingToken, rejection: RejectedCompletion, position: SegmentPosition
) -> int:
    async with pool.transaction(fence.tenant_id) as connection:
        (step,) = await steps.append_steps(connection, fence, TERM, [a_step()], UsageDelta())
        row = role_calls.build_rejected_row(step.seq, CallOrigin("planner", "policy", 1), rejection, position)
        await role_calls.insert_role_calls(connection, fence, [row])
    return step.seq


async def test_what_no_role_could_use_is_kept_whole_and_says_so(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await rejected(pool, fence, a_rejection(), SegmentPosition(0, 0, BoundaryReason.REJECTED))
    (turn,) = await stored(pool, fence)
    assert (turn.is_accepted, turn.attempt, turn.problem, turn.trainable) == (False, 1, "Write a word.", "rl")
    assert (turn.completion, turn.sampling["seed"], turn.finish_reason) == ("?!", 1, "length")
    assert turn.tokens is not None
    assert list(turn.tokens.completion_ids) == [63, 33, 0]
    assert (list(turn.tokens.logprobs), turn.tokens.loss_mask) == (pytest.approx([-0.1, -0.2, -0.3]), b"\1\1\1")
    assert list(turn.tokens.entropy or ()) == [0.5] * 3
    assert [(s.kind, s.start, s.end, s.start_token, s.end_token) for s in turn.spans] == [("text", 0, 2, 0, 3)]


async def test_an_end_of_turn_alone_and_a_nul_are_kept_as_sampled(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await rejected(pool, fence, a_rejection(""), SegmentPosition(0, 0, BoundaryReason.REJECTED))
    await rejected(pool, fence, a_rejection("a\0", 2), SegmentPosition(1, 0, BoundaryReason.REJECTED))
    empty, nul = await stored(pool, fence)
    assert [(t.completion, t.spans[0].end_token, t.is_accepted) for t in (empty, nul)] == [
        ("", 1, False),
        ("a\N{REPLACEMENT CHARACTER}", 3, False),
    ]
    assert nul.tokens is not None
    assert list(nul.tokens.completion_ids) == [97, 0, 0]


async def test_a_role_continues_from_what_it_could_use(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, BoundaryReason.ROOT))
    await rejected(pool, fence, a_rejection(prompt=(1, 2, 9)), SegmentPosition(1, 0, BoundaryReason.REJECTED, 0, 2))
    async with pool.transaction(LOCAL_TENANT) as connection:
        count, tails = await segments.read_segment_tails(connection, fence.run_id)
        _, aside = await segments.read_segments(connection, fence.run_id)
    assert (count, tails["planner"].segment, tails["planner"].completion) == (2, 0, "ab")
    assert (aside.boundary_reason, aside.parent_idx, aside.parent_tokens) == (BoundaryReason.REJECTED, 0, 2)


async def test_the_turns_of_a_call_share_what_it_used(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = a_rejection()
    passing = FailedAttempt(FailureKind.TIMEOUT, "No whole answer.", usage=Usage(1, 1))
    used = first.attempt.usage + passing.usage + Usage(3, 2, Decimal("0.5"))
    answer = replace(an_answer(a_trace()), attempts=(first.attempt, passing), usage=used)
    assert extract_rejected_completions(answer.attempts) == [first]
    await rejected(pool, fence, first, SegmentPosition(0, 0, BoundaryReason.REJECTED))
    await wrote(pool, fence, answer, SegmentPosition(1, 0, BoundaryReason.ROOT))
    one, other = await stored(pool, fence)
    assert [(t.attempt, t.prompt_tokens, t.completion_tokens) for t in (one, other)] == [(1, 3, 3), (3, 4, 3)]
    assert [a["message"] for a in other.failed_attempts] == ["Write a word.", "No whole answer."]
    async with pool.transaction(LOCAL_TENANT) as connection:
        rows = await (await connection.execute("select cost_usd from role_call order by seq")).fetchall()
    assert rows == [(Decimal("0.25"),), (Decimal("0.5"),)]


async def test_cached_and_thinking_tokens_are_stored_and_added_up_for_the_run(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    for cached, thought in ((40, 5), (60, 0)):
        used = Usage(100, 10, cached_prompt_tokens=cached, reasoning_tokens=thought)
        await wrote(pool, fence, replace(an_answer(), usage=used), None)
    calls = await stored(pool, fence)
    assert [(call.cached_prompt_tokens, call.reasoning_tokens) for call in calls] == [(40, 5), (60, 0)]
    async with pool.transaction(LOCAL_TENANT) as connection:
        details = await run_summaries.get_token_details(connection, fence.run_id)
    assert details == TokenDetails(200, 20, 100, 5)


async def test_a_segment_says_where_it_comes_from(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, BoundaryReason.ROOT))
    await wrote(pool, fence, an_answer(a_trace((1, 2, 7))), SegmentPosition(1, 0, BoundaryReason.MEMORY_EDIT, 0, 2))
    async with pool.transaction(LOCAL_TENANT) as connection:
        _, edited = await segments.read_segments(connection, fence.run_id)
    assert (edited.idx, edited.parent_idx, edited.parent_tokens) == (1, 0, 2)
    assert edited.boundary_reason is BoundaryReason.MEMORY_EDIT
    assert list(edited.token_ids or ())[:3] == [1, 2, 7]


async def test_a_registered_version_is_found_by_its_name(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    version = new_id()
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute(
            "insert into policy_version (id, tenant_id, name, version, kind, uri, sha256)"
            " values (%s, %s, 'small', 3, 'full', 'x', 'x')",
            (version, LOCAL_TENANT),
        )
    await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, BoundaryReason.ROOT))
    await wrote(pool, fence, an_answer(a_trace(policy="served elsewhere")), SegmentPosition(1, 0, BoundaryReason.ROOT))
    ours, other = await stored(pool, fence)
    assert (ours.policy_version_id, other.policy_version_id) == (version, None)


async def test_the_last_turns_are_marked_and_no_others(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    first = await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(0, 0, BoundaryReason.ROOT))
    last = await wrote(pool, fence, an_answer(a_trace()), SegmentPosition(1, 0, BoundaryReason.WORKSPACE_RESET, 0, 3))
    for seqs in ([first], [last]):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await role_calls.mark_final_calls(connection, fence.run_id, seqs)
    assert [turn.is_final for turn in await stored(pool, fence)] == [False, True]


BROKEN = {
    "logprobs": [{"logprobs": (-0.1, -0.2)}, {"logprobs": (-0.1, float("nan"), -1.0)}, {"logprobs": (0.1, -1.0, -1.0)},
                 {"logprobs": (-0.1, float("-inf"), -1.0)}],
    "entropy": [{"entropy": (0.1,)}, {"entropy": (0.1, 0.1, float("inf"))}, {"entropy": (0.1, 7e4, 0.1)},
                {"entropy": (0.1, -0.1, 0.1)}],
    "completion_ids": [{"completion_ids": (97, -98, 0)}, {"completion_ids": (97, 2**24, 0)},
                       {"token_bytes": (b"a", b"c", b"")}],
    "prompt_ids": [{"prompt_ids": (1, -1)}, {"prompt_ids": ()}],
    "token_bytes": [{"token_bytes": (b"ab",)}],
}  # fmt: skip


@pytest.mark.parametrize(("field", "change"), [(f, c) for f, changes in BROKEN.items() for c in changes])
def test_tokens_that_contradict_one_another_are_rejected_by_name(field: str, change: dict[str, object]) -> None:
    with pytest.raises(CorruptTokensError) as error:
        build_token_columns(
            replace(a_trace(), **change),  # type: ignore[arg-type]
            "ab",
            0,
        )
    assert error.value.field == field


async def test_a_rejected_turn_leaves_no_step(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    with pytest.raises(CorruptTokensError):
        await wrote(pool, fence, an_answer(a_trace(), text="another text"), SegmentPosition(0, 0, BoundaryReason.ROOT))
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert [s.title for s in await steps.list_steps_after(connection, fence.run_id, 1, 9)] == []


@given(st.lists(st.booleans(), max_size=40))
def test_a_mask_comes_back_whatever_its_length(mask: list[bool]) -> None:
    packed = pack_mask(mask)
    assert len(packed) == (len(mask) + 7) // 8
    assert [bool(b) for b in unpack_mask(packed, len(mask))] == mask


def test_a_mask_with_bits_beyond_its_ids_is_rejected() -> None:
    with pytest.raises(CorruptTokensError):
        unpack_mask(b"\x0f", 3)


def test_ids_take_three_bytes_log_probabilities_four_and_entropies_two() -> None:
    columns = build_token_columns(a_trace((258,), "a"), "a", 0)
    assert columns.prompt_ids == b"\x02\x01\x00"
    assert (columns.loss_mask, len(columns.logprobs), len(columns.entropy or b"")) == (b"\x03", 8, 4)
    assert list(unpack_ids(columns.completion_ids)) == [97, 0]
    assert unpack_floats(columns.logprobs)[0] == pytest.approx(-0.1)
