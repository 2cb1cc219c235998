"""The JUDGE step, after ReSeek: whether what a tool brought back helps, and what of it no later prompt shows.

The only home of the role and of what follows from its answers. A flow mounts it by calling `judged` after a tool call
and by showing its roles what `sifted` leaves. Nothing is deleted: an observation that was set aside stays on record.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, StrictBool

from offing.sdk import (
    EngineFailure,
    Evidence,
    Form,
    Headline,
    Message,
    Role,
    RoleReply,
    RunContext,
    Seat,
    SpanKind,
    Step,
    StepKind,
    TextSpan,
    ToolResult,
    ToolStatus,
    Unusable,
    shortened,
)
from offing_graphs.extractive.words import stems, terms
from offing_graphs.parts.findings import pieces, value_of
from offing_graphs.parts.prompting import data, in_form, passage, prompt_of
from offing_graphs.parts.shapes import Piece, Record, Shape
from offing_graphs.parts.tagged import tagged, whole, written

JUDGE_SAYS = (
    "You judge what a research tool has just brought back. Say whether it helps to answer the question, and name the "
    "passages that do not. What you set aside is not shown to anybody again, so keep whatever may be needed."
)
FORM_RULE = """<why>one sentence</why>
<helps>true or false</helps>
<discard>ids of the passages that do not help, with commas between; nothing where all help</discard>"""
TAGS = ("why", "helps", "discard")
KEPT = 64
"""Judgements read back at most."""


class JudgeInput(Shape):
    """One observation, with the question and the sub-goal that it was made for."""

    question: str
    goal: str
    tool: str
    status: str
    pieces: tuple[Piece, ...] = ()
    value: str = ""
    """A result that is no passage. Empty: there is none."""


class Judgement(Shape):
    """The judge's answer."""

    why: str = Field(description="Why it helps or does not, in one sentence.")
    helps: StrictBool = Field(description="true: at least a part of it helps to answer the question.")
    discard: tuple[str, ...] = Field(default=(), description="Ids of the passages that do not help, such as E3.")


def render(given: JudgeInput) -> tuple[Message, ...]:
    shown = [passage(p) for p in given.pieces] or [data(given.value or "Nothing was found.")]
    asked = f"The question:\n{given.question}\nThe step was to: {given.goal}\nTool: {given.tool}, {given.status}"
    return prompt_of(JUDGE_SAYS, (asked, *shown))


def by_words(given: JudgeInput) -> Judgement:
    """A passage helps that holds a telling word of the question or the goal, itself or where it stands."""
    asked = [t for t in terms(f"{given.question} {given.goal}") if not t.weak]
    useless = tuple(p.id for p in given.pieces if asked and not any(t.within(_stems(p)) > 0 for t in asked))
    if given.pieces and len(useless) == len(given.pieces):
        return Judgement(why="No passage holds a telling word of the question.", helps=False, discard=useless)
    if not given.pieces and not given.value:
        return Judgement(why="Nothing came back.", helps=False)
    why = (
        f"{len(useless)} of {len(given.pieces)} passages share no word with it." if useless else "It is on the subject."
    )
    return Judgement(why=why, helps=True, discard=useless)


def by_rule(given: JudgeInput, _seat: Seat) -> Judgement:
    """In a made-up world whatever a tool says is so, and nothing is passages."""
    helps = given.status == ToolStatus.OK and bool(given.value)
    return Judgement(why="The tool knows it." if helps else "The tool does not know it.", helps=helps)


def read(text: str, _given: JudgeInput) -> Judgement | Unusable:
    found = tagged(text, TAGS)
    if isinstance(found, Unusable):
        return found
    helps = {"true": True, "false": False}.get(found["helps"].text)
    if helps is None:
        return Unusable(f"<helps> holds true or false, and not: {shortened(found['helps'].text, 40)!r}")
    ids = tuple(i.strip() for i in found["discard"].text.split(",") if i.strip())
    return Judgement(why=found["why"].text, helps=helps, discard=ids)


def write(output: Judgement, _given: JudgeInput) -> str:
    said = (" ".join(output.why.split()), str(output.helps).lower(), ", ".join(output.discard))
    return written(zip(TAGS, said, strict=True))


def spans(text: str) -> tuple[TextSpan, ...]:
    said = whole(text)
    return (said.span(SpanKind.ANSWER),) if said else ()


def _line(output: Judgement) -> Headline:
    kept = "kept" if output.helps else "set aside"
    less = f", without {', '.join(output.discard)}" if output.helps and output.discard else ""
    return Headline(shortened(output.why), kept + less)


JUDGE = Role(
    "judge",
    JudgeInput,
    Judgement,
    render,
    _line,
    kind=StepKind.TURN,
    label="judge",
    extractive=by_words,
    forms=(Form("plain", lambda g: in_form(render(g), FORM_RULE), read, spans, write),),
    rules={"world": by_rule},
)


async def judged(
    ctx: RunContext, question: str, goal: str, result: ToolResult, back: Sequence[Evidence], turn: int
) -> RoleReply[Judgement] | EngineFailure:
    """Ask about a call that has just been made; once a call, so that judging never loops."""
    given = JudgeInput(
        question=question,
        goal=goal,
        tool=result.tool,
        status=result.status,
        pieces=pieces(back),
        value=value_of(result),
    )
    return await ctx.call(JUDGE, given, turn=turn)


async def judgements(ctx: RunContext, before: int) -> dict[int, Judgement]:
    """What was judged before turn `before`, by turn."""
    said = await ctx.recall(StepKind.TURN, KEPT)
    return {s.turn: _output(s) for s in said if s.payload.get("role") == JUDGE.name and s.turn < before}


def sifted(memory: Sequence[Record], found: Mapping[int, Judgement]) -> tuple[tuple[Record, ...], frozenset[str]]:
    """The records as later prompts show them, and the ids of passages that they do not show.

    A passage that another turn brought back, and kept, stays.
    """
    dropped = {id for r in memory if r.turn in found for id in _dropped(r, found[r.turn])}
    kept = {id for r in memory for id in r.evidence if r.turn not in found or id not in _dropped(r, found[r.turn])}
    out = frozenset(dropped - kept)
    return tuple(_shown(r, found.get(r.turn), out) for r in memory), out


def _shown(record: Record, judgement: Judgement | None, out: frozenset[str]) -> Record:
    left: dict[str, Any] = {"evidence": tuple(id for id in record.evidence if id not in out)}
    if judgement is not None and not judgement.helps:
        left |= {"finding": f"Set aside: {shortened(judgement.why, 200)}", "value": ""}
    return record.model_copy(update=left)


def _dropped(record: Record, judgement: Judgement) -> frozenset[str]:
    return frozenset(judgement.discard) & set(record.evidence) if judgement.helps else frozenset(record.evidence)


def _stems(piece: Piece) -> Any:
    return stems(f"{piece.title} {piece.heading} {piece.text}")


def _output(step: Step) -> Judgement:
    return Judgement.model_validate(step.payload["output"])
