"""The router's role, which estimates how likely each mode is to answer, and AgentFlow's roles."""

from offing.sdk import Headline, Role, StepKind, shorten_line
from offing_graphs.agentflow import roles as agentflow
from offing_graphs.router import extractive, prompts
from offing_graphs.router.schemas import Route, RouterInput


def _render_headline(output: Route) -> Headline:
    chances = " · ".join(f"{c.mode} {c.chance:.0%}" for c in output.chances)
    return Headline(shorten_line(chances), shorten_line(output.why))


ROUTER = Role(
    "router",
    RouterInput,
    Route,
    prompts.render_prompt,
    _render_headline,
    step_kind=StepKind.ROLE_CALL,
    label="route",
    extractive=extractive.estimate_by_words,
    prompt_formats=(prompts.TEXT_FORMAT,),
)
ROLES = (ROUTER, *agentflow.ROLES)
