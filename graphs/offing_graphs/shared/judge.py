"""The judge role after ReSeek: whether a tool result helps, and which passages later prompts omit.

A graph uses it by calling `judge_result` after a tool call and by showing its roles what
`filter_discarded` returns. Nothing is deleted: a discarded observation stays recorded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, StrictBool

from offing.sdk import (
    UNTRUSTED_BLOCK_RULE,
    EngineFailure,
    Evidence,
    Headline,
    InvalidOutput,
    Message,
    Role,
    RoleReply,
    RuleContext,
    RunContext,
    SpanKind,
    StepKind,
    ToolResult,
    ToolStatus,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.extractive.word_forms import extract_stems, extract_terms
from offing_graphs.shared.findings import passages_from_evidence, render_value
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.prompt_parts import build_prompt, render_passages
from offing_graphs.shared.prompt_room import compute_room
from offing_graphs.shared.schemas import FrozenModel, MemoryRecord, RetrievedPassage, RoleInput
from offing_graphs.shared.state import output_from_step
from offing_graphs.shared.tagged_text import build_text_format, parse_tagged, render_tagged
from offing_graphs.shared.text_repairs import build_tag_repair

JUDGE_SYSTEM_PROMPT = (
    "You judge what a research tool has just brought back. Say whether it helps to answer the question, and name the "
    "passages that do not. What you set aside is not shown to anybody again, so keep whatever may be needed."
)
TEXT_FORMAT_RULE = """<why>one sentence</why>
<helps>true or false</helps>
<discard>ids of the passages that do not help, with commas between; nothing where all help</discard>"""
TAGS = ("why", "helps", "discard")
MAX_PASSAGE_CHARS = 120_000
"""Maximum number of characters of the judged passages, where the window of the model is unknown."""
MAX_PASSAGE_TOKENS = 32_000
"""Maximum estimated tokens of the judged passages."""
MAX_JUDGMENTS = 64
"""Maximum number of judgments that are read back."""


class JudgeInput(RoleInput):
    """One observation, with the question and the sub-goal of its call."""

    question: str
    goal: str
    tool: str
    status: str
    passages: tuple[RetrievedPassage, ...] = ()
    value: str = ""
    """A result that is not a passage. Empty means that there is none."""


class Judgment(FrozenModel):
    """The judge's answer."""

    why: str = Field(description="Why it helps or does not, in one sentence.")
    helps: StrictBool = Field(description="true: at least a part of it helps to answer the question.")
    discard: tuple[str, ...] = Field(default=(), description="Ids of the passages that do not help, such as E3.")


def render_prompt(inputs: JudgeInput) -> tuple[Message, ...]:
    request = f"The question:\n{inputs.question}\nThe step was to: {inputs.goal}\nTool: {inputs.tool}, {inputs.status}"
    if not inputs.passages:
        return build_prompt(JUDGE_SYSTEM_PROMPT, (request, wrap_untrusted(inputs.value or "Nothing was found.")))
    room = compute_room(inputs.context_tokens, Judgment, (JUDGE_SYSTEM_PROMPT, UNTRUSTED_BLOCK_RULE, request))
    allowance = room.allow(MAX_PASSAGE_CHARS, MAX_PASSAGE_TOKENS)
    rendered = render_passages((inputs.question, inputs.goal), inputs.passages, allowance)
    return build_prompt(JUDGE_SYSTEM_PROMPT, (request, *rendered.parts), rendered.omitted)


def judge_by_words(inputs: JudgeInput) -> Judgment:
    """Judge by words.

    A passage helps if its text, title or heading contains a telling word of the question or the
    goal.
    """
    telling_terms = [t for t in extract_terms(f"{inputs.question} {inputs.goal}") if not t.is_weak]
    useless = tuple(
        p.id for p in inputs.passages if telling_terms and not any(t.match(_stem_passage(p)) > 0 for t in telling_terms)
    )
    if inputs.passages and len(useless) == len(inputs.passages):
        return Judgment(why="No passage holds a telling word of the question.", helps=False, discard=useless)
    if not inputs.passages and not inputs.value:
        return Judgment(why="Nothing came back.", helps=False)
    why = (
        f"{len(useless)} of {len(inputs.passages)} passages share no word with it."
        if useless
        else "It is on the subject."
    )
    return Judgment(why=why, helps=True, discard=useless)


def judge_by_rule(inputs: JudgeInput, _context: RuleContext) -> Judgment:
    """Judge by rule: in a synthetic world every value of a tool helps, and there are no passages."""
    helps = inputs.status == ToolStatus.OK and bool(inputs.value)
    return Judgment(why="The tool knows it." if helps else "The tool does not know it.", helps=helps)


def parse_output(text: str, _inputs: JudgeInput) -> Judgment | InvalidOutput:
    blocks = parse_tagged(text, TAGS)
    if isinstance(blocks, InvalidOutput):
        return blocks
    helps = {"true": True, "false": False}.get(blocks["helps"].text)
    if helps is None:
        return InvalidOutput(f"<helps> holds true or false, and not: {shorten_line(blocks['helps'].text, 40)!r}")
    ids = tuple(i.strip() for i in blocks["discard"].text.split(",") if i.strip())
    return Judgment(why=blocks["why"].text, helps=helps, discard=ids)


def render_output(output: Judgment, _inputs: JudgeInput) -> str:
    values = (" ".join(output.why.split()), str(output.helps).lower(), ", ".join(output.discard))
    return render_tagged(zip(TAGS, values, strict=True))


def _render_headline(output: Judgment) -> Headline:
    outcome = "kept" if output.helps else "set aside"
    less = f", without {', '.join(output.discard)}" if output.helps and output.discard else ""
    return Headline(shorten_line(output.why), outcome + less)


JUDGE = Role(
    "judge",
    JudgeInput,
    Judgment,
    render_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="judge",
    extractive=judge_by_words,
    prompt_formats=(
        build_text_format(
            render_prompt, TEXT_FORMAT_RULE, parse_output, render_output, SpanKind.ANSWER, build_tag_repair(TAGS)
        ),
    ),
    rules={"world": judge_by_rule},
)


async def judge_result(
    ctx: RunContext, question: str, goal: str, result: ToolResult, evidence: Sequence[Evidence], turn: int
) -> RoleReply[Judgment] | EngineFailure:
    """Ask the judge about a finished tool call.

    There is one judgment per call, so that judging never loops.
    """
    inputs = JudgeInput(
        question=question,
        goal=goal,
        tool=result.tool,
        status=result.status,
        passages=passages_from_evidence(evidence),
        value=render_value(result),
    )
    return await call_fitted(ctx, JUDGE, inputs, turn=turn)


async def load_judgments(ctx: RunContext, before_turn: int) -> dict[int, Judgment]:
    """Load the judgments before turn `before_turn`, by turn."""
    steps = await ctx.last_steps(StepKind.ROLE_CALL, MAX_JUDGMENTS)
    return {
        s.turn: output_from_step(s, Judgment)
        for s in steps
        if s.payload.get("role") == JUDGE.name and s.turn < before_turn
    }


def filter_discarded(
    memory: Sequence[MemoryRecord], judgments: Mapping[int, Judgment]
) -> tuple[tuple[MemoryRecord, ...], frozenset[str]]:
    """Return the records as later prompts show them, and the ids of the discarded passages.

    A passage that another turn returned and kept is not discarded.
    """
    dropped = {id for r in memory if r.turn in judgments for id in _list_discarded(r, judgments[r.turn])}
    kept_ids = {
        id
        for r in memory
        for id in r.evidence
        if r.turn not in judgments or id not in _list_discarded(r, judgments[r.turn])
    }
    out = frozenset(dropped - kept_ids)
    return tuple(_apply_judgment(r, judgments.get(r.turn), out) for r in memory), out


def _apply_judgment(record: MemoryRecord, judgment: Judgment | None, discarded_ids: frozenset[str]) -> MemoryRecord:
    left: dict[str, Any] = {"evidence": tuple(id for id in record.evidence if id not in discarded_ids)}
    if judgment is not None and not judgment.helps:
        left |= {"finding": f"Set aside: {shorten_line(judgment.why, 200)}", "value": ""}
    return record.model_copy(update=left)


def _list_discarded(record: MemoryRecord, judgment: Judgment) -> frozenset[str]:
    return frozenset(judgment.discard) & set(record.evidence) if judgment.helps else frozenset(record.evidence)


def _stem_passage(passage: RetrievedPassage) -> Any:
    return extract_stems(f"{passage.title} {passage.heading} {passage.text}")
