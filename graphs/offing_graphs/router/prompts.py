"""The prompt of the router and its `text` format."""

from offing.sdk import InvalidOutput, Message, SpanKind, shorten_line
from offing_graphs.router.schemas import Chance, Mode, Route, RouterInput
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.tagged_text import build_text_format, parse_tagged, render_tagged
from offing_graphs.shared.text_repairs import build_tag_repair

ROUTER_SYSTEM_PROMPT = (
    "You decide how much work a question needs. For each mode that is offered, estimate the chance, 0 to 1, that it "
    "ends with a right and supported answer. instant: one search with the question's own words. reasoning: one search "
    "for each part of the question. agentic: searches that build on what earlier ones found, each one checked. Do not "
    "answer the question."
)
TEXT_FORMAT_RULE = """<why>one sentence</why>
<chances>
a line for each mode that is offered: its name, a space, and a number from 0 to 1
</chances>"""
TAGS = ("why", "chances")


def render_prompt(inputs: RouterInput) -> tuple[Message, ...]:
    offered = "\n".join(f"{o.mode}: about {o.calls} calls" for o in inputs.options)
    return build_prompt(ROUTER_SYSTEM_PROMPT, (*render_task(inputs), f"Modes that are offered:\n{offered}"))


def parse_output(text: str, _inputs: RouterInput) -> Route | InvalidOutput:
    blocks = parse_tagged(text, TAGS)
    if isinstance(blocks, InvalidOutput):
        return blocks
    lines = [line.split() for line in blocks["chances"].text.splitlines() if line.strip()]
    try:
        chances = tuple(Chance(mode=Mode(mode), chance=float(chance)) for mode, chance in lines)
        return Route(why=blocks["why"].text, chances=chances)
    except ValueError as error:
        return InvalidOutput(
            f"<chances> holds lines of a mode and a number from 0 to 1: {shorten_line(str(error), 200)}"
        )


def render_output(output: Route, _inputs: RouterInput) -> str:
    lines = "\n".join(f"{c.mode} {c.chance:g}" for c in output.chances)
    return render_tagged((("why", " ".join(output.why.split())), ("chances", lines)))


TEXT_FORMAT = build_text_format(
    render_prompt, TEXT_FORMAT_RULE, parse_output, render_output, SpanKind.PLAN, build_tag_repair(TAGS)
)
