"""What the agent is given, read from the run's recorded steps by the numbers in the state.

The same state gives the same input, so that a node that runs again asks what it asked before.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from offing.sdk import Evidence, RunContext, Span, Step, StepKind, ToolSpec, ToolStatus, result_of
from offing_graphs.memact.config import Config
from offing_graphs.memact.context import EDITS, PRUNE, WRITE
from offing_graphs.memact.shapes import Act, AgentInput, Entry, Found, PruneArgs, WriteArgs
from offing_graphs.memact.state import Place, State, places
from offing_graphs.parts.findings import pieces, value_of
from offing_graphs.parts.observing import observed
from offing_graphs.parts.shapes import Card, Exchange

RETRIEVED = 10_000
"""Passages that can be shown again; as many as a run's evidence holds."""

_NAMED = re.compile(r"\bE\d+\b")

MEMORY_CARDS = (
    Card(
        name=PRUNE,
        description="Remove records from the conversation by their ids. A note keeps what they told that is needed.",
        parameters=PruneArgs.model_json_schema(),
    ),
    Card(
        name=WRITE,
        description="Keep a note in the conversation. It removes nothing.",
        parameters=WriteArgs.model_json_schema(),
    ),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A record with the passages that it shows."""

    entry: Entry
    passages: tuple[Evidence, ...] = ()


async def read(
    ctx: RunContext,
    state: State,
    config: Config,
    ask: Literal["action", "summary", "answer"] = "action",
    reason: str = "",
) -> AgentInput:
    """The context as the state has it, before turn `state["turn"] + 1`."""
    retrieved = await ctx.evidence(RETRIEVED) if state["turn"] else ()
    shown = await _records(ctx, state, config, retrieved)
    summary = await _summary(ctx, state["summary"])
    heard = dict(zip(state["heard"][::2], state["heard"][1::2], strict=True))
    messages = {m.seq: m for m in await ctx.messages(0)} if heard else {}
    told = [(_text(messages[seq]), turn) for seq, turn in heard.items() if seq in messages]
    cards = tuple(map(_card, ctx.tools))
    return AgentInput(
        question=ctx.run.question,
        earlier=tuple(Exchange(question=q, answer=a) for q, a in ctx.run.earlier),
        wishes=tuple(text for text, _ in told),
        heard=tuple(turn for _, turn in told),
        tools=(*cards, *MEMORY_CARDS) if config.edits else cards,
        records=tuple(record.entry for record in shown),
        summary=summary,
        stage=1 + state["summaries"],
        evidence=pieces(_seen(shown, summary, retrieved)),
        ask=ask,
        reason=reason,
        window=config.window,
        edits=config.edits,
        turn=state["turn"] + 1,
        remaining=ctx.run.budget.turns - state["turn"],
    )


async def act_of(ctx: RunContext, seq: int) -> Act:
    """The action that a step records."""
    return _act((await ctx.fetch([seq]))[0])


async def _records(ctx: RunContext, state: State, config: Config, retrieved: Sequence[Evidence]) -> tuple[Shown, ...]:
    live = places(state)
    if not live:
        return ()
    seqs = sorted({seq for place in live for seq in (place.action, place.observation)})
    steps = {step.seq: step for step in await ctx.fetch(seqs)}
    by_span = {e.span: e for e in retrieved}
    return tuple(_shown(place, steps, by_span, state["since"], config) for place in live)


def _seen(shown: Sequence[Shown], summary: str, retrieved: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """What the context shows or names, in the order of first retrieval."""
    notes = [str(record.entry.act.args.get("note", "")) for record in shown if record.entry.act.tool in EDITS]
    named = set(_NAMED.findall("\n".join([*notes, summary])))
    ids = {e.id for record in shown for e in record.passages} | named
    return tuple(e for e in retrieved if e.id in ids)


def _shown(
    place: Place, steps: Mapping[int, Step], retrieved: Mapping[Span, Evidence], since: int, config: Config
) -> Shown:
    act, seen = _act(steps[place.action]), steps[place.observation]
    base: dict[str, Any] = {"id": place.id, "turn": place.turn, "seq": place.action, "act": act}
    base["fresh"] = place.turn > since
    if seen.kind is not StepKind.TOOL:
        return Shown(Entry(**base, observation=str(seen.payload["said"]), ok=bool(seen.payload["ok"])))
    result = result_of(seen)
    told = observed(result, retrieved, config.observation)
    ids = tuple(e.id for e in told.shown)
    found = Found(
        tool=result.tool,
        args=result.args,
        status=result.status,
        content=_values(result.content),
        value=value_of(result),
        evidence=ids,
    )
    ok = result.status is ToolStatus.OK
    return Shown(Entry(**base, observation=told.text, ok=ok, found=found), told.shown)


def _values(content: Mapping[str, Any]) -> dict[str, Any]:
    """What is no text of passages."""
    return {k: v for k, v in content.items() if k not in {"passages", "text"} or "expression" in content}


def _act(step: Step) -> Act:
    return Act.model_validate(step.payload["output"])


async def _summary(ctx: RunContext, seq: int) -> str:
    return (await act_of(ctx, seq)).summary if seq else ""


@lru_cache(maxsize=64)
def _card(spec: ToolSpec) -> Card:
    """Made once a tool: the schema of its arguments takes longer to write than a turn."""
    return Card(name=spec.name, description=spec.description, parameters=spec.args.model_json_schema())


def _text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)


def newly_heard(heard: Sequence[int], messages: Sequence[Step], turn: int) -> list[int]:
    """The state's `heard` with the messages that turn `turn` is the first to be shown."""
    known = set(heard[::2])
    return [*heard, *(n for m in messages if m.seq not in known for n in (m.seq, turn))]
