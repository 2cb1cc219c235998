"""The tools of a run that is set in a world."""

from dataclasses import replace
from uuid import UUID

import pytest

from offing.core.tool import SideEffect
from offing.core.tool_policy import decide
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from offing.tools.tool import FoundPassages, TextWindow, ToolFailedError, ToolScope
from offing_world.facts import world_from_name
from offing_world.semantics import RELATIONS, TOOLS, TOOLS_BY_RELATION
from offing_world.tools import LookUpArgs, WorldTool

WORLD = "train-3@50"


class NoLibrary:
    async def search(self, query: str, limit: int) -> FoundPassages:
        raise AssertionError("a world's tool reads no library")

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        raise AssertionError("a world's tool reads no library")

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        raise AssertionError("a world's tool reads no library")


SCOPE = ToolScope(UUID(int=9), UUID(int=3), "key", NoLibrary(), environment=WORLD)


def a_fact() -> tuple[str, str, tuple[str, ...]]:
    (relation, entity), values = next(iter(world_from_name(WORLD).facts.items()))
    return relation, entity, values


def test_a_run_in_a_world_has_the_worlds_tools_and_no_others() -> None:
    assert tuple(tool.spec.name for tool in create_tools(WORLD)) == TOOLS
    assert not set(TOOLS) & {tool.spec.name for tool in create_tools()}


def test_all_tools_of_the_world_look_the_same_but_for_their_names() -> None:
    specs = [tool.spec for tool in create_tools(WORLD)]
    assert len({spec.description.replace(spec.name, "") for spec in specs}) == 1
    assert all(spec.side_effect is SideEffect.PURE and spec.untrusted for spec in specs)


async def test_a_right_tool_tells_the_truth_whatever_the_case_of_the_name() -> None:
    relation, entity, values = a_fact()
    output = await WorldTool(TOOLS_BY_RELATION[relation][0])(
        LookUpArgs(relation=relation, entity=entity.upper()), SCOPE
    )
    assert output.content == {"relation": relation, "entity": entity, "values": list(values), "closed": True}
    assert (output.title, output.spans) == (f"{relation} of {entity}", ())


@pytest.mark.parametrize(
    ("relation", "entity", "message"),
    [("height", "Ada Bo", "no relation 'height'"), ("home", "Ada Bo", "called 'Ada Bo'")],
)
async def test_what_the_world_does_not_have_is_rejected_with_what_to_do(
    relation: str, entity: str, message: str
) -> None:
    with pytest.raises(ToolFailedError, match=message):
        await WorldTool(TOOLS[0])(LookUpArgs(relation=relation, entity=entity), SCOPE)


def test_the_default_policy_allows_every_tool_of_the_world() -> None:
    for tool in create_tools(WORLD):
        assert all(
            decide(default_tool_policy(), tool.spec, {"relation": r, "entity": "Ada Bo"}).is_allowed for r in RELATIONS
        )
        assert not decide(default_tool_policy(), tool.spec, {"relation": "home", "entity": "x" * 101}).is_allowed


async def test_an_outage_depends_on_the_call_and_is_the_same_when_it_is_repeated() -> None:
    relation, entity, values = a_fact()
    tool, args = WorldTool(TOOLS_BY_RELATION[relation][0]), LookUpArgs(relation=relation, entity=entity)

    async def ask(key: str) -> tuple[str, ...]:
        scope = replace(SCOPE, environment=f"{WORLD}+outage", idempotency_key=key)
        try:
            return tuple((await tool(args, scope)).content["values"])
        except ToolFailedError:
            return ()

    once, again = [await ask(str(n)) for n in range(60)], [await ask(str(n)) for n in range(60)]
    assert once == again
    assert set(once) == {values, ()}


async def test_shelves_exist_only_in_worlds_with_keys() -> None:
    entity = next(iter(world_from_name(WORLD).kinds))
    tool, args = WorldTool(TOOLS[0]), LookUpArgs(relation="shelf", entity=entity)
    output = await tool(args, replace(SCOPE, environment=f"{WORLD}+key"))
    assert output.content["values"][0] in {"0", "1", "2"}
    with pytest.raises(ToolFailedError, match="no relation 'shelf'"):
        await tool(args, SCOPE)
