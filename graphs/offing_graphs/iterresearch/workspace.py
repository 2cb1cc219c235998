"""How a round's workspace is read: the question, and what the latest round and its tool call left. Nothing older.

The only home of that rule. Passages are looked up by id; they never change once they are stored.
"""

from offing.sdk import Evidence, RunContext, Step, ToolResult, result_of
from offing_graphs.iterresearch.shapes import Call, Result, Round, Stage, Workspace
from offing_graphs.iterresearch.state import State
from offing_graphs.parts.cards import card_of
from offing_graphs.parts.findings import brought_back, ids_in, pieces, value_of
from offing_graphs.parts.shapes import Exchange, Piece

WISHES = 20
"""Messages from people that are passed on, the latest."""
CITED = 240
"""Passages looked up by the ids in a report, the last ones named."""
ALL = 1_000_000


async def workspace(ctx: RunContext, state: State, stage: Stage, heard: int) -> Workspace:
    """What a round is given. `heard`: messages of people up to this step."""
    messages = await ctx.messages(0)
    before = await latest_round(ctx, state)
    found = await _result(ctx, state["tool"])
    known = await _evidence(ctx, before, found)
    return Workspace(
        question=ctx.run.question,
        earlier=tuple(Exchange(question=q, answer=a) for q, a in ctx.run.earlier),
        wishes=tuple(_text(m) for m in messages if m.seq <= heard)[-WISHES:],
        stage=stage,
        tools=tuple(map(card_of, ctx.tools)),
        report=before.report if before else "",
        action=before.action if before else None,
        result=_shown(found, known) if found else None,
        cited=_named(before.report, known) if before else (),
    )


async def latest_round(ctx: RunContext, state: State) -> Round | None:
    """The answer of the round that the state names. None: there is none yet."""
    if not state["round"]:
        return None
    (step,) = await ctx.fetch([state["round"]])
    return Round.model_validate(step.payload["output"])


async def asked_call(ctx: RunContext, state: State) -> Call | None:
    """The tool call that the latest round asks for. None: it asks for none."""
    before = await latest_round(ctx, state)
    return before.action if before else None


async def _result(ctx: RunContext, seq: int) -> ToolResult | None:
    return result_of((await ctx.fetch([seq]))[0]) if seq else None


def _shown(found: ToolResult, known: tuple[Evidence, ...]) -> Result:
    return Result(
        status=found.status,
        message=found.message,
        content=found.content,
        pieces=pieces(brought_back(found, known)),
        value=value_of(found),
    )


async def _evidence(ctx: RunContext, before: Round | None, found: ToolResult | None) -> tuple[Evidence, ...]:
    """Everything retrieved, where a round can refer to any of it; else it is not asked for."""
    named = before is not None and bool(ids_in(before.report))
    return await ctx.evidence(ALL) if named or (found and found.spans) else ()


def _named(report: str, known: tuple[Evidence, ...]) -> tuple[Piece, ...]:
    """The passages that a report names, in the order of their first retrieval."""
    named = frozenset(ids_in(report)[-CITED:])
    return pieces(e for e in known if e.id in named)


def _text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)
