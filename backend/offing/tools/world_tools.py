"""The tools of a run that is set in a world, in place of the library's: what each is good for has to be found out.

All look the same from outside. Knows which world from the run's scope alone.
"""

import asyncio

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.tools.tool import Tool, ToolArgs, ToolFailed, ToolScope
from offing.world.facts import World, world_of
from offing.world.lookup import Said, look_up
from offing.world.semantics import RELATIONS, TOOLS
from offing.world.spec import parse

QUICK = 5_000
"""Documents of a world that is made in less than a tenth of a second; a larger one is made off the event loop."""


class LookUpArgs(ToolArgs, frozen=True):
    relation: str = Field(
        min_length=1,
        max_length=40,
        description=f"What is wanted of the entity; one of: {', '.join(RELATIONS)}.",
        examples=[RELATIONS[0]],
    )
    entity: str = Field(min_length=1, max_length=100, description="A person, town, guild or book, by its full name.")


class WorldTool:
    """One of the world's tools, by its name."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name=name,
            description=f"Ask the {name} index for a relation of an entity. An index is right about some relations; on "
            "others it finds nothing, or is mistaken. `closed` says that it claims to give all values that there are.",
            args=LookUpArgs,
            verb="look up",
            effect=Effect.PURE,
            timeout_seconds=30.0,
            untrusted=True,
        )

    async def __call__(self, args: LookUpArgs, scope: ToolScope) -> ToolOutput:
        world = await _world(scope.world)
        entity = world.entity(args.entity)
        if args.relation not in RELATIONS:
            raise ToolFailed(f"There is no relation {shortened(args.relation, 40)!r}. Use: {', '.join(RELATIONS)}.")
        if entity is None:
            raise ToolFailed(
                f"Nothing is called {shortened(args.entity, 60)!r} here. Give a full name, as you read it."
            )
        return _output(args.relation, entity, look_up(world, self.spec.name, args.relation, entity))


def world_tools() -> tuple[Tool, ...]:
    return tuple(WorldTool(name) for name in TOOLS)


async def _world(name: str) -> World:
    if parse(name).documents > QUICK:
        return await asyncio.to_thread(world_of, name)
    return world_of(name)


def _output(relation: str, entity: str, said: Said) -> ToolOutput:
    found = ", ".join(said.values) or ("nothing is recorded" if said.closed else "nothing")
    return ToolOutput(
        content={"relation": relation, "entity": entity, "values": list(said.values), "closed": said.closed},
        title=shortened(f"{relation} of {entity}"),
        detail=shortened(found),
    )
