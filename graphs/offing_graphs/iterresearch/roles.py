"""The graph's one role, in the three forms that a round can have: what it is given, how it is asked, who answers it."""

from offing.sdk import Headline, Role, StepKind, shortened
from offing_graphs.iterresearch import extractive, prompts
from offing_graphs.iterresearch.compact import COMPACT
from offing_graphs.iterresearch.plain import PLAIN
from offing_graphs.iterresearch.rules import RULES
from offing_graphs.iterresearch.shapes import ANSWERS, Round, Stage, Workspace
from offing_graphs.parts.prompting import compact_json


def _line(output: Round) -> Headline:
    if output.action is not None:
        return Headline(shortened(f"{output.action.tool} {compact_json(output.action.args)}"), shortened(output.think))
    return Headline(shortened(output.answer.answer if output.answer else "") or "Answer", shortened(output.think))


def _researcher(stage: Stage) -> Role[Workspace, Round]:
    return Role(
        "researcher",
        Workspace,
        ANSWERS[stage],
        prompts.researcher,
        _line,
        kind=StepKind.TURN,
        label="round",
        extractive=extractive.researcher,
        forms=(PLAIN, COMPACT),
        rules=RULES,
    )


RESEARCHERS = {stage: _researcher(stage) for stage in Stage}
"""By stage: the same role, which differs in what its answer must hold."""
ROLES = (RESEARCHERS[Stage.MIDDLE],)
