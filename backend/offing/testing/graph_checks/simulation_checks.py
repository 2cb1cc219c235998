"""Checks by a simulated run without a model.

They find state that grows, worker crashes that a run does not survive, and prompts that share
nothing with the previous turn.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from offing.core.errors import StateTooLargeError
from offing.core.run import Budget
from offing.sdk import Graph, Message, Role
from offing.storage.checkpoints import MAX_STATE_BYTES
from offing.testing.faults import RecoveryMismatchError, assert_survives_worker_loss
from offing.testing.graph_checks.failure_handling import find_failure_issues
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.scenario import OutOfAnswersError
from offing.testing.simulation import SimulatedRun, simulate_run

QUESTION = "How long did the harbour of Saltmere take to build, and who paid for it?"
DOCUMENTS = {
    "harbour.md": "# The harbour\n\nThe harbour of Saltmere took nine years to build. The council paid for the mole.",
    "lamp.md": "# The lamp\n\nThe lamp of Saltmere was lit in 1911. It burned paraffin until 1956.",
}
MAX_TURNS = 4
MIN_SHARED_PREFIX = 0.5
"""Minimum fraction of the previous prompt that a prompt must repeat.

Below it, the prompt shares no training rows and cached tokens with the previous turn.
"""
MAX_GROWTH_BYTES = 1_024
"""Maximum growth of a checkpoint in bytes per turn."""


async def find_simulation_issues(graph: Graph) -> list[GraphIssue]:
    """Return the issues that a simulated run shows.

    Returns none if a role needs a model; a test with scripted answers then finds them.
    """
    lacking = [role.name for role in graph.roles if role.extractive is None]
    if lacking:
        why = f"These roles have no model-free answer: {', '.join(lacking)}. The graph could not be simulated."
        return [
            GraphIssue(WARNING, "no-rehearsal", graph.name, why, "Test it with `offing.testing` and scripted answers.")
        ]
    options: Any = {"documents": DOCUMENTS, "budget": Budget(max_turns=MAX_TURNS)}
    try:
        run = await simulate_run(graph, QUESTION, **options)
        await assert_survives_worker_loss(graph, QUESTION, documents=DOCUMENTS, budget=Budget(max_turns=1))
        failure_issues = await find_failure_issues(graph, QUESTION, DOCUMENTS, run)
    except StateTooLargeError as error:
        return [
            GraphIssue(
                ERROR,
                "state-size",
                graph.name,
                str(error),
                "Record the content as a step and keep its seq in the state.",
            )
        ]
    except RecoveryMismatchError as error:
        remedy = "Make nodes depend only on the state and on recorded results."
        return [GraphIssue(ERROR, "unsafe-to-repeat", graph.name, str(error), remedy)]
    except (
        OutOfAnswersError,
        Exception,
    ) as error:  # the code of an author may raise any exception, and it is reported as an issue
        why = f"A simulated run without a model ended with {type(error).__name__}: {error}."
        return [
            GraphIssue(
                ERROR, "rehearsal", graph.name, why, "Correct the error, and test the graph with `offing.testing`."
            )
        ]
    return [
        *failure_issues,
        *_find_growing_checkpoints(graph, run),
        *_find_unstable_prompts(graph, run),
        *_find_report_issues(graph, run),
    ]


def _find_growing_checkpoints(graph: Graph, run: SimulatedRun) -> list[GraphIssue]:
    grown = [later - earlier for earlier, later in pairwise(run.checkpoint_sizes)]
    if len(grown) < 2 or run.usage.turns < 2:
        return []
    a_turn = (run.checkpoint_sizes[-1] - run.checkpoint_sizes[0]) // run.usage.turns
    if a_turn <= MAX_GROWTH_BYTES:
        return []
    why = (
        f"Its state grows by {a_turn} bytes per turn. A run fails at {MAX_STATE_BYTES} bytes, after "
        f"about {MAX_STATE_BYTES // a_turn} turns."
    )
    return [
        GraphIssue(
            ERROR, "state-size", graph.name, why, "Record the content as steps and keep their seqs in the state."
        )
    ]


def _find_unstable_prompts(graph: Graph, run: SimulatedRun) -> list[GraphIssue]:
    issues: list[GraphIssue] = []
    for role in graph.roles:
        inputs = [call.inputs for call in run.executed_calls if call.name == role.name and call.turn]
        if len(inputs) < 2:
            continue
        best = max(_min_shared_prefix(role, name, inputs) for name in ("", *(one.name for one in role.prompt_formats)))
        if best < MIN_SHARED_PREFIX:
            why = (
                f"Its prompt repeats only {best:.0%} of the previous prompt as a prefix. The rest is charged "
                "and trained again."
            )
            remedy = "Put the parts that change at the end, or add a prompt format that only appends."
            issues.append(GraphIssue(WARNING, "prefix", f"role {role.name!r}", why, remedy))
    return issues


def _min_shared_prefix(role: Role[Any, Any], prompt_format: str, inputs: Sequence[Any]) -> float:
    """Return the smallest fraction of a prompt with which the next turn's prompt begins."""
    render: Any = (role.find_format(prompt_format) if prompt_format else None) or role
    try:
        texts = [_join_messages(render.render(one)) for one in inputs]
    except Exception:  # a prompt format for other questions than the simulation's
        return 0.0
    return min(_count_common_prefix(one, other) / max(len(one), 1) for one, other in pairwise(texts))


def _join_messages(messages: tuple[Message, ...]) -> str:
    return "\x1e".join(f"{message.role}\x1f{message.text}" for message in messages)


def _count_common_prefix(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((n for n in range(length) if one[n] != other[n]), length)


def _find_report_issues(graph: Graph, run: SimulatedRun) -> list[GraphIssue]:
    if run.report is not None:
        return []
    why = "It ended without delivering a report, so the run gets a fallback report."
    return [GraphIssue(WARNING, "no-report", graph.name, why, "Call `ctx.submit_report` in its last node.")]
