"""Memory as action: the algebra of edits, and edits as turns of a run."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.step import StepKind
from offing_graphs.memact import extractive, graph
from offing_graphs.memact.context import apply_edit, build_record_id, parse_record_turn
from offing_graphs.memact.schemas import PRUNE, WRITE, Act, AgentInput, ContextRecord, ToolFinding
from tests.graphs.in_memory_context import carry_out
from tests.graphs.memact.builders import DONE, SEARCH, acts, blank, prune, run, texts


@dataclass(frozen=True)
class Record:
    id: str
    text: str


IDS = st.integers(1, 30).map(build_record_id)

CONTEXTS = st.lists(IDS, unique=True).map(lambda ids: tuple(Record(id, f"text of {id}") for id in ids))

NAMED = st.lists(st.one_of(IDS, st.sampled_from(["system", "question", "r", "r0", "1", "R1", "r1 ", ""])), max_size=12)


@given(CONTEXTS, NAMED, st.text(max_size=20))
def test_prune_removes_precisely_the_records_that_are_named(
    context: tuple[Record, ...], ids: list[str], note: str
) -> None:
    done = apply_edit(context, PRUNE, ids, note)
    assert done.context == tuple(r for r in context if r.id not in ids)
    assert set(done.deleted_ids) == {r.id for r in context} & set(ids)
    assert set(done.unknown_ids) == set(ids) - {r.id for r in context}
    assert done.ok == done.breaks_prefix == (len(done.context) < len(context))


@given(CONTEXTS, st.lists(st.sampled_from(["system", "question", "user", "r0", "r", "r31", "r1r2", "*"])), st.text())
def test_what_is_no_record_cannot_be_removed_and_changes_nothing(
    context: tuple[Record, ...], ids: list[str], note: str
) -> None:
    done = apply_edit(context, PRUNE, ids, note)
    assert done.context == context
    assert not done.ok
    assert not done.breaks_prefix


def test_an_id_is_never_part_of_another() -> None:
    context = (Record("r1", "about r11"), Record("r11", "about r1"), Record("r111", "r11 r1"))
    assert apply_edit(context, PRUNE, ["r11"]).context == (context[0], context[2])


@given(CONTEXTS, NAMED, st.text(max_size=20))
def test_write_removes_nothing_with_any_argument(context: tuple[Record, ...], ids: list[str], note: str) -> None:
    done = apply_edit(context, WRITE, ids, note)
    assert done.context == context
    assert done.ok == bool(note.strip())
    assert not done.breaks_prefix


@given(CONTEXTS, NAMED, NAMED)
def test_two_prunes_are_one_of_both(context: tuple[Record, ...], first: list[str], second: list[str]) -> None:
    apart = apply_edit(apply_edit(context, PRUNE, first).context, PRUNE, second).context
    assert apart == apply_edit(context, PRUNE, [*first, *second]).context


@given(st.text(max_size=6))
def test_only_an_id_of_ours_is_an_id(text: str) -> None:
    assert not parse_record_turn(text) or build_record_id(parse_record_turn(text)) == text


async def test_an_edit_takes_effect_before_the_next_action_and_its_note_can_be_removed_too() -> None:
    ctx = run(engines=acts(SEARCH, SEARCH, prune("r1", "r9", note="Twice a year."), prune("r3"), DONE))
    await carry_out(ctx, graph)
    seen = [[e.id for e in inputs.records] for _, inputs in ctx.role_inputs]
    assert seen == [[], ["r1"], ["r1", "r2"], ["r2", "r3"], ["r2", "r4"]]
    third = ctx.role_inputs[3][1].records[1]
    assert third.action.args["note"] == "Twice a year."
    assert "Removed r1." in third.observation
    assert "no record r9" in third.observation
    edits = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert [(e["op"], e["id"], e["deleted"], e["remaining"]) for e in edits] == [
        ("prune", "r3", ["r1"], ["r2"]),
        ("prune", "r4", ["r3"], ["r2"]),
    ]


BROKEN = [
    prune("r7"),
    prune("system", "question"),
    prune("r"),
    Act(tool=PRUNE, args={"delete_ids": [], "note": "kept?"}),
    Act(tool=PRUNE, args={"delete_ids": "r1"}),
    Act(tool=PRUNE, args={"ids": ["r1"]}),
    Act(tool=WRITE, args={"note": ""}),
    Act(tool=WRITE, args={"note": "x", "delete_ids": ["r1"]}),
    Act(summary="Nobody asked."),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda a: str(a.args or a.summary))
async def test_a_failed_edit_is_a_recorded_turn_that_changes_nothing(broken: Act) -> None:
    ctx = run(engines=acts(SEARCH, broken, SEARCH, DONE), prompt_formats={"agent": "text"})
    await carry_out(ctx, graph)
    before, after = ctx.role_calls[1], ctx.role_calls[2]
    assert texts(after.messages)[: len(before.messages)] == texts(before.messages)
    assert "r2" in after.messages[-1].text
    assert "failed" in after.messages[-1].text
    assert [s.boundary_reason for s in ctx.role_calls] == [None] * 4
    assert [s.ok for s in ctx.steps if s.kind is StepKind.MEMORY] == [False]
    assert ctx.turns == 4


async def test_what_a_person_wrote_cannot_be_pruned() -> None:
    def agent(inputs: AgentInput) -> Act:
        if inputs.turn == 1:
            ctx.say("Mind the Heron.")
        return {1: SEARCH, 2: prune("r1"), 3: prune("r2")}.get(inputs.turn, DONE)

    ctx = run(engines={"agent": agent})
    await carry_out(ctx, graph)
    assert all("Mind the Heron." in "\n".join(m.text for m in messages) for _, messages in ctx.prompts[1:])


def test_a_note_does_not_tell_in_which_order_arguments_were_kept() -> None:
    args = {"query": "tower", "limit": 12}
    ways = [args, dict(reversed(args.items()))]
    act = Act(tool="search_library", args=args)
    messages = [ToolFinding(tool="search_library", args=way, status="ok", content={}) for way in ways]
    entries = [
        ContextRecord(id="r1", turn=1, seq=3, action=act, observation="", in_segment=True, finding=result)
        for result in messages
    ]
    notes = [extractive.choose_action(blank(request="summary", records=(entry,))).summary for entry in entries]
    assert notes[0] == notes[1]
    assert '"limit": 12' in notes[0]
