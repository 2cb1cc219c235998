"""A graph whose contexts grow, are edited and are built anew, so that its record has every kind of segment.

`diarist` is asked in an append-only form; at turn 4 the first exchange is taken out of its memory, and of
training. `reader` is asked
with a fresh prompt each turn.
"""

from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime
from pydantic import BaseModel

from offing.core.tokens import CompletionSpan, SpanKind
from offing.core.trajectory import BoundaryReason
from offing.sdk import (
    DraftSection,
    DraftSentence,
    EngineFailure,
    FailureKind,
    Graph,
    Headline,
    InvalidOutput,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StepDraft,
    StepKind,
    StopReason,
)
from offing.sdk.prompt_format import PromptFormat
from tests.workers.graphs import untyped

GRAPHS = "tests.workers.segment_graph:recording"

EDITED_AT = 4

MUMBLED = "mh"
"""Beginning of what neither role can use."""


class Said(BaseModel):
    seq: int
    text: str


class Diary(BaseModel):
    question: str
    entries: tuple[Said, ...] = ()


class Word(BaseModel):
    word: str


def _grown(inputs: Diary) -> tuple[Message, ...]:
    messages = [Message("user", (inputs.question,))]
    for text in inputs.entries:
        messages += [Message("assistant", (text.text,), turn=text.seq), Message("user", (f"seen {len(text.text)}",))]
    return tuple(messages)


def _fresh(inputs: Diary) -> tuple[Message, ...]:
    return (
        Message("system", ("You read.",)),
        Message("user", (" ".join(s.text for s in inputs.entries[-1:]) or "nothing",)),
    )


def _parse(text: str, _: Diary) -> Word | InvalidOutput:
    return InvalidOutput("Write it out.") if text.startswith(MUMBLED) else Word(word=text)


def _whole(text: str) -> tuple[CompletionSpan, ...]:
    return (CompletionSpan(SpanKind.ACTION, 0, len(text)),)


def _line(word: Word) -> Headline:
    return Headline(word.word or "-")


DIARIST: Role[Diary, Word] = Role(
    *("diarist", Diary, Word, _grown, _line, StepKind.PLAN, "write"),
    prompt_formats=(PromptFormat("compact", _grown, _parse, _whole),),
)
READER: Role[Diary, Word] = Role(
    *("reader", Diary, Word, _fresh, _line, StepKind.VERIFICATION, "read"),
    prompt_formats=(PromptFormat("compact", _fresh, _parse),),
)


class State(TypedDict):
    turn: int
    numbers: list[int]
    stop: str


async def _talk(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn, stored = state["turn"] + 1, state["numbers"]
    await ctx.begin_turn(turn)
    if reason := ctx.stop_reason():
        return {"stop": reason}
    edited = BoundaryReason.MEMORY_EDIT if turn == EDITED_AT else None
    if edited:
        await ctx.append_steps(StepDraft(StepKind.NOTE, "dropped", {}, turn=turn, excluded_role_call_seq=stored[0]))
        stored = stored[1:]
    steps = await ctx.get_steps(stored)
    messages = tuple(Said(seq=s.seq, text=s.payload["output"]["word"]) for s in steps)
    written = await ctx.call_role(
        DIARIST, Diary(question=ctx.run.question, entries=messages), turn=turn, boundary=edited
    )
    if isinstance(written, EngineFailure):
        return {"stop": _why(written)}
    seen = (Said(seq=written.seq, text=written.output.word),)
    read = await ctx.call_role(READER, Diary(question="", entries=seen), turn=turn)
    if isinstance(read, EngineFailure):
        return {"stop": _why(read)}
    return {"turn": turn, "numbers": [*stored, written.seq], "stop": ""}


def _why(failure: EngineFailure) -> StopReason:
    return StopReason.INVALID_OUTPUT if failure.kind is FailureKind.INVALID_OUTPUT else StopReason.PROVIDER_DOWN


async def _write(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    reason = StopReason.ANSWERED if state["stop"] == StopReason.TURN_LIMIT else StopReason(state["stop"])
    sections = (DraftSection(heading="Words", sentences=(DraftSentence(text="Done."),)),)
    await ctx.submit_report(ReportDraft(title="Words", sections=sections), reason)
    return {}


def _next(state: State) -> str:
    return "write" if state["stop"] else "talk"


def _build() -> Any:
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("talk", _talk)
    graph.add_node("write", _write)
    graph.add_edge(START, "talk")
    graph.add_conditional_edges("talk", _next, ["write", "talk"])
    graph.add_edge("write", END)
    return graph


recording = Graph(
    name="recording",
    title="Recording",
    description="Two roles whose contexts grow, are edited and are built anew.",
    version="recording-1",
    build=_build,
    initial_state=lambda _: {"turn": 0, "numbers": [], "stop": ""},
    roles=(DIARIST, READER),
    turn_counter="turn",
)
