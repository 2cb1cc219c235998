"""Faults that show when a graph is rehearsed without a model: state that grows, losses it does not survive, prompts
that share nothing with the turn before."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from offing.core.errors import StateTooLarge
from offing.core.run import Budget
from offing.sdk import Graph, Message, Role
from offing.storage.checkpoints import LIMIT
from offing.testing.checking.disturbed import faults_of_trouble
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.faults import Differs, survives
from offing.testing.rehearsal import Rehearsal, rehearse
from offing.testing.scene import OutOfAnswers

QUESTION = "How long did the harbour of Saltmere take to build, and who paid for it?"
DOCUMENTS = {
    "harbour.md": "# The harbour\n\nThe harbour of Saltmere took nine years to build. The council paid for the mole.",
    "lamp.md": "# The lamp\n\nThe lamp of Saltmere was lit in 1911. It burned paraffin until 1956.",
}
TURNS = 4
LEAST_SHARED = 0.5
"""Share of the turn before that a prompt repeats, under which its rows and its cached tokens are its own."""
MOST_GROWTH = 1_024
"""Bytes by which a checkpoint may grow a turn."""


async def faults_of_trial(graph: Graph) -> list[Finding]:
    """Nothing, where a role needs a model: a test with answers shows it then."""
    lacking = [role.name for role in graph.roles if role.extractive is None]
    if lacking:
        why = f"It has no model-free answer ({', '.join(lacking)}), so that nothing could be rehearsed here."
        return [Finding(WARNING, "no-rehearsal", graph.name, why, "Test it with `offing.testing` and answers.")]
    given: Any = {"documents": DOCUMENTS, "budget": Budget(turns=TURNS)}
    try:
        run = await rehearse(graph, QUESTION, **given)
        await survives(graph, QUESTION, documents=DOCUMENTS, budget=Budget(turns=1))
        troubles = await faults_of_trouble(graph, QUESTION, DOCUMENTS, run)
    except StateTooLarge as error:
        return [Finding(ERROR, "state-size", graph.name, str(error), "Record the content and keep its seq.")]
    except Differs as error:
        remedy = "Let nodes depend on the state and on what is recorded, and on nothing else."
        return [Finding(ERROR, "unsafe-to-repeat", graph.name, str(error), remedy)]
    except (OutOfAnswers, Exception) as error:  # an author's code may raise anything, and that is what is to be said
        why = f"A rehearsal without a model ended with {type(error).__name__}: {error}."
        return [Finding(ERROR, "rehearsal", graph.name, why, "Mend it, and test it with `offing.testing`.")]
    return [*troubles, *_sizes(graph, run), *_prompts(graph, run), *_report(graph, run)]


def _sizes(graph: Graph, run: Rehearsal) -> list[Finding]:
    grown = [later - earlier for earlier, later in pairwise(run.checkpoint_sizes)]
    if len(grown) < 2 or run.spent.turns < 2:
        return []
    a_turn = (run.checkpoint_sizes[-1] - run.checkpoint_sizes[0]) // run.spent.turns
    if a_turn <= MOST_GROWTH:
        return []
    why = f"Its state grows by {a_turn} bytes a turn; at {LIMIT} a run fails, after about {LIMIT // a_turn} turns."
    return [Finding(ERROR, "state-size", graph.name, why, "Record the content as steps and keep their seqs.")]


def _prompts(graph: Graph, run: Rehearsal) -> list[Finding]:
    found: list[Finding] = []
    for role in graph.roles:
        given = [call.given for call in run.executed if call.name == role.name and call.turn]
        if len(given) < 2:
            continue
        best = max(_shared(role, name, given) for name in ("", *(form.name for form in role.forms)))
        if best < LEAST_SHARED:
            why = f"Its prompt begins with {best:.0%} of the turn before; the rest is paid for and trained anew."
            remedy = "Put what changes at the end, or offer a form that only appends."
            found.append(Finding(WARNING, "prefix", f"role {role.name!r}", why, remedy))
    return found


def _shared(role: Role[Any, Any], form: str, given: Sequence[Any]) -> float:
    """The least share of a prompt that the next turn's prompt begins with."""
    render: Any = (role.form(form) if form else None) or role
    try:
        texts = [_text(render.render(one)) for one in given]
    except Exception:  # a form that is made for other questions than the rehearsal's
        return 0.0
    return min(_common(one, other) / max(len(one), 1) for one, other in pairwise(texts))


def _text(messages: tuple[Message, ...]) -> str:
    return "\x1e".join(f"{message.role}\x1f{message.text}" for message in messages)


def _common(one: str, other: str) -> int:
    shortest = min(len(one), len(other))
    return next((n for n in range(shortest) if one[n] != other[n]), shortest)


def _report(graph: Graph, run: Rehearsal) -> list[Finding]:
    if run.report is not None:
        return []
    why = "It ended without delivering a report, so that a plain list of what was found stands for one."
    return [Finding(WARNING, "no-report", graph.name, why, "Call `ctx.deliver` in its last node.")]
