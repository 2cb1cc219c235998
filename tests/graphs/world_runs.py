"""Graphs on questions of a synthetic world, with roles answered by rules, on the context in memory.

Shared by the tests of all graphs: `trial` runs one question, `accuracy` many. Roles without a rule of that name are
answered by their rule `world`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count as count_up
from typing import Any

from offing.core.run import Budget
from offing.sdk import Graph
from offing.tools.environment import extend_role
from offing.tools.tool import Tool, ToolScope
from offing_world.question_solver import NOT_ANSWERABLE
from offing_world.tasks import WorldTask, generate_tasks
from offing_world.tools import WORLD_TOOLS
from tests.graphs.in_memory_context import NAMES, Handler, InMemoryContext, Library, carry_out

HELD_OUT = "heldout-1@500"
TURNS = 12
"""As runs have by default."""
NO_LIBRARY = Library([])
BY_NAME = {one.name: one.tool for one in WORLD_TOOLS}
SPECS = tuple(tool.spec for tool in BY_NAME.values())


@dataclass(frozen=True, slots=True)
class Trial:
    """A question that a graph has worked on."""

    task: WorldTask
    ctx: InMemoryContext
    right: bool


@cache
def held_out(count: int, hops: tuple[int, int] = (1, 4), world: str = HELD_OUT) -> tuple[WorldTask, ...]:
    """Questions of a held-out world; the same ones always."""
    return tuple(generate_tasks(world, count=count, hops=hops))


async def trial(
    graph: Graph,
    task: WorldTask,
    rule: str,
    *,
    prompt_formats: Mapping[str, str] | None = None,
    turns: int = TURNS,
    seed: int = 0,
    **more: Any,
) -> Trial:
    """One run. `rule`: who answers roles that have it, such as oracle. `forms`: role to form; others in JSON."""
    roles = [extend_role(role) for role in graph.roles]
    rules = {role.name: rule if rule in role.rules else "world" for role in roles if role.rules}
    ctx = InMemoryContext(
        NO_LIBRARY,
        task.question,
        Budget(max_turns=turns),
        specs=SPECS,
        handlers=handlers(task.scope["environment"], seed),
        rules=rules,
        prompt_formats=dict(prompt_formats or {}),
        seed=seed,
        **more,
    )
    await carry_out(ctx, graph)
    return Trial(task, ctx, is_right(task, ctx))


async def trials(graph: Graph, rule: str, expected: Iterable[WorldTask], **more: Any) -> list[Trial]:
    """One run a task, each with a seed of its own."""
    return [await trial(graph, task, rule, seed=n, **more) for n, task in enumerate(expected)]


async def accuracy(graph: Graph, rule: str, count: int = 100, **more: Any) -> float:
    """Share of held-out questions whose short answer is right, 0 to 1."""
    done = await trials(graph, rule, held_out(count), **more)
    return sum(t.right for t in done) / len(done)


def is_right(task: WorldTask, ctx: InMemoryContext) -> bool:
    """The report's short answer is an accepted one; for a question without an answer, that it says so."""
    text = ctx.report.answer.text if ctx.report.answer else ""
    return text.strip().casefold() in {a.casefold() for a in task.answers or (NOT_ANSWERABLE,)}


def handlers(world: str, seed: int = 0) -> dict[str, Handler]:
    """The world's tools as the platform has them. Every call has an idempotency key of its own, by the run's seed."""
    no_port: Any = None  # these tools read nothing of the library
    scope = ToolScope(NAMES, NAMES, "", no_port, environment=world)
    keys = (f"{seed} {n}" for n in count_up())
    return {name: _handler(tool, scope, keys) for name, tool in BY_NAME.items()}


def _handler(tool: Tool, scope: ToolScope, keys: Iterator[str]) -> Handler:
    return lambda args: tool(args, replace(scope, idempotency_key=next(keys)))
