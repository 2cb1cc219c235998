"""The router's role: how likely each mode is to answer. What is made of that is decided in `modes`."""

from pydantic import Field

from offing.sdk import Form, Headline, Message, Role, Seat, SpanKind, StepKind, TextSpan, Unusable, shortened
from offing_graphs.agentflow import roles as agentflow
from offing_graphs.extractive.question import compares
from offing_graphs.parts.prompting import in_form, prompt_of, task
from offing_graphs.parts.shapes import Case, Shape
from offing_graphs.parts.tagged import tagged, whole, written
from offing_graphs.router.modes import Mode, Offer

ROUTER_SAYS = (
    "You decide how much work a question needs. For each mode that is offered, estimate the chance, 0 to 1, that it "
    "ends with a right and supported answer. instant: one search with the question's own words. reasoning: one search "
    "for each part of the question. agentic: searches that build on what earlier ones found, each one checked. Do not "
    "answer the question."
)
FORM_RULE = """<why>one sentence</why>
<chances>
a line for each mode that is offered: its name, a space, and a number from 0 to 1
</chances>"""
TAGS = ("why", "chances")


class Chance(Shape):
    """One mode's chance."""

    mode: Mode
    chance: float = Field(ge=0, le=1, description="That it ends with a right and supported answer.")


class RouterInput(Case):
    parts: tuple[str, ...]
    """The question's, by its words."""
    offers: tuple[Offer, ...]


class Route(Shape):
    """The router's answer."""

    why: str = Field(description="What the question needs, in one sentence.")
    chances: tuple[Chance, ...] = Field(min_length=1, max_length=len(Mode), description="One for each mode offered.")

    def by_mode(self) -> dict[Mode, float]:
        return {c.mode: c.chance for c in self.chances}


def render(given: RouterInput) -> tuple[Message, ...]:
    offered = "\n".join(f"{o.mode}: about {o.calls} calls" for o in given.offers)
    return prompt_of(ROUTER_SAYS, (*task(given), f"Modes that are offered:\n{offered}"))


def by_words(given: RouterInput) -> Route:
    """The fewer parts a question has, the likelier that fewer looks answer it; a comparison needs both of its sides."""
    more = len(given.parts) - 1
    compared = any(map(compares, given.parts))
    looks = {Mode.INSTANT: 0.9 - 0.25 * more, Mode.REASONING: 0.9, Mode.AGENTIC: 0.95}
    if compared:
        looks |= {Mode.INSTANT: 0.4, Mode.REASONING: 0.8}
    why = f"{more + 1} parts by its words" + (", some of them compared." if compared else ".") if more else "One part."
    return Route(why=why, chances=tuple(Chance(mode=o.mode, chance=max(0.0, looks[o.mode])) for o in given.offers))


def by_rule(given: RouterInput, _seat: Seat) -> Route:
    """In a made-up world only the loop can look things up."""
    chances = tuple(Chance(mode=o.mode, chance=float(o.mode is Mode.AGENTIC)) for o in given.offers)
    return Route(why="A question about a made-up world.", chances=chances)


def read(text: str, _given: RouterInput) -> Route | Unusable:
    found = tagged(text, TAGS)
    if isinstance(found, Unusable):
        return found
    lines = [line.split() for line in found["chances"].text.splitlines() if line.strip()]
    try:
        chances = tuple(Chance(mode=Mode(mode), chance=float(chance)) for mode, chance in lines)
        return Route(why=found["why"].text, chances=chances)
    except ValueError as error:
        return Unusable(f"<chances> holds lines of a mode and a number from 0 to 1: {shortened(str(error), 200)}")


def write(output: Route, _given: RouterInput) -> str:
    lines = "\n".join(f"{c.mode} {c.chance:g}" for c in output.chances)
    return written((("why", " ".join(output.why.split())), ("chances", lines)))


def spans(text: str) -> tuple[TextSpan, ...]:
    said = whole(text)
    return (said.span(SpanKind.PLAN),) if said else ()


def render_plain(given: RouterInput) -> tuple[Message, ...]:
    return in_form(render(given), FORM_RULE)


def _line(output: Route) -> Headline:
    said = " · ".join(f"{c.mode} {c.chance:.0%}" for c in output.chances)
    return Headline(shortened(said), shortened(output.why))


ROUTER = Role(
    "router",
    RouterInput,
    Route,
    render,
    _line,
    kind=StepKind.TURN,
    label="route",
    extractive=by_words,
    forms=(Form("plain", render_plain, read, spans, write),),
    rules={"world": by_rule},
)
ROLES = (ROUTER, *agentflow.ROLES)
