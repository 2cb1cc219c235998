"""The tools of a run in a synthetic world, in place of the library's.

All have the same interface; which relations each is reliable for has to be found out. The world is taken
from the run's scope only.
"""

import asyncio

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.tools.platform_tool import MAX_CALLS, PlatformTool, limit_length
from offing.tools.tool import ToolArgs, ToolFailedError, ToolScope
from offing_world.fact_lookup import LookUpResult, is_out, look_up
from offing_world.facts import World, world_from_name
from offing_world.semantics import RELATIONS, SHELF, TOOLS
from offing_world.spec import WorldOption, parse_world_name

MAX_INLINE_WORLD_DOCUMENTS = 5_000
"""Maximum number of documents of a world that is generated on the event loop. It takes less than a tenth of a second.
"""


class LookUpArgs(ToolArgs, frozen=True):
    relation: str = Field(
        min_length=1,
        max_length=40,
        description=f"What is wanted of the entity; one of: {', '.join(RELATIONS)}.",
        examples=[RELATIONS[0]],
    )
    entity: str = Field(min_length=1, max_length=100, description="A person, town, guild or book, by its full name.")


class WorldTool:
    """One of the world's tools, selected by its name."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name=name,
            description=f"Ask the {name} index for a relation of an entity. An index is right about some relations; on "
            "others it finds nothing, or is mistaken. `closed` says that it claims to give all values that there are.",
            args=LookUpArgs,
            label="look up",
            side_effect=SideEffect.PURE,
            timeout_seconds=30.0,
            untrusted=True,
        )

    async def __call__(self, args: LookUpArgs, scope: ToolScope) -> ToolOutput:
        world = await _load_world(scope.environment)
        entity = world.find_entity(args.entity)
        known = (*RELATIONS, SHELF) if WorldOption.KEY in world.spec.options else RELATIONS
        if args.relation not in known:
            raise ToolFailedError(f"There is no relation {shorten_line(args.relation, 40)!r}. Use: {', '.join(known)}.")
        if entity is None:
            raise ToolFailedError(
                f"Nothing is called {shorten_line(args.entity, 60)!r} here. Give a full name, as you read it."
            )
        if is_out(world, self.spec.name, args.relation, entity, f"{scope.run_id} {scope.idempotency_key}"):
            raise ToolFailedError(f"The {self.spec.name} index is out of order. Try again.")
        return _build_output(args.relation, entity, look_up(world, self.spec.name, args.relation, entity))


WORLD_TOOLS = tuple(
    PlatformTool(
        WorldTool(name),
        ToolRule(tool=name, when=(limit_length("relation", 40), limit_length("entity", 100)), max_calls=MAX_CALLS),
    )
    for name in TOOLS
)
"""The tools of a run in a synthetic world. They only read generated knowledge."""


async def _load_world(name: str) -> World:
    if parse_world_name(name).documents > MAX_INLINE_WORLD_DOCUMENTS:
        return await asyncio.to_thread(world_from_name, name)
    return world_from_name(name)


def _build_output(relation: str, entity: str, result: LookUpResult) -> ToolOutput:
    finding = ", ".join(result.values) or ("nothing is recorded" if result.closed else "nothing")
    witness = {"witness": result.witness} if result.witness else {}
    return ToolOutput(
        content={
            "relation": relation,
            "entity": entity,
            "values": list(result.values),
            "closed": result.closed,
            **witness,
        },
        title=shorten_line(f"{relation} of {entity}"),
        detail=shorten_line(finding),
    )
