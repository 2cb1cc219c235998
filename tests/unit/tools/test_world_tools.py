"""The tools of a run that is set in a world."""

from uuid import UUID

import pytest

from offing.core.policy import WORLD_TOOLS, decide, default_policy
from offing.core.tool import Effect
from offing.tools import registry
from offing.tools.tool import FoundPassage, ToolFailed, ToolScope, Window
from offing.tools.world_tools import LookUpArgs, WorldTool
from offing.world.facts import world_of
from offing.world.semantics import ANSWERED_BY, RELATIONS, TOOLS

WORLD = "train-3@50"


class NoLibrary:
    async def search(self, query: str, limit: int) -> tuple[FoundPassage, ...]:
        raise AssertionError("a world's tool reads no library")

    async def read(self, wanted: str, start: int, length: int) -> Window | None:
        raise AssertionError("a world's tool reads no library")

    async def suggest(self, wanted: str, limit: int) -> tuple[str, ...]:
        raise AssertionError("a world's tool reads no library")


SCOPE = ToolScope(UUID(int=9), UUID(int=3), "key", NoLibrary(), world=WORLD)


def a_fact() -> tuple[str, str, tuple[str, ...]]:
    (relation, entity), values = next(iter(world_of(WORLD).facts.items()))
    return relation, entity, values


def test_a_run_in_a_world_has_the_worlds_tools_and_no_others() -> None:
    assert tuple(tool.spec.name for tool in registry(WORLD)) == TOOLS
    assert not set(TOOLS) & {tool.spec.name for tool in registry()}


def test_all_tools_of_the_world_look_the_same_but_for_their_names() -> None:
    specs = [tool.spec for tool in registry(WORLD)]
    assert len({spec.description.replace(spec.name, "") for spec in specs}) == 1
    assert all(spec.effect is Effect.PURE and spec.untrusted for spec in specs)


async def test_a_right_tool_tells_the_truth_whatever_the_case_of_the_name() -> None:
    relation, entity, values = a_fact()
    output = await WorldTool(ANSWERED_BY[relation][0])(LookUpArgs(relation=relation, entity=entity.upper()), SCOPE)
    assert output.content == {"relation": relation, "entity": entity, "values": list(values), "closed": True}
    assert (output.title, output.spans) == (f"{relation} of {entity}", ())


@pytest.mark.parametrize(
    ("relation", "entity", "said"),
    [("height", "Ada Bo", "no relation 'height'"), ("home", "Ada Bo", "called 'Ada Bo'")],
)
async def test_what_the_world_does_not_have_is_refused_with_what_to_do(relation: str, entity: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said):
        await WorldTool(TOOLS[0])(LookUpArgs(relation=relation, entity=entity), SCOPE)


def test_the_default_policy_allows_every_tool_of_the_world() -> None:
    assert WORLD_TOOLS == TOOLS
    for tool in registry(WORLD):
        assert all(decide(default_policy(), tool.spec, {"relation": r, "entity": "Ada Bo"}).allowed for r in RELATIONS)
        assert not decide(default_policy(), tool.spec, {"relation": "home", "entity": "x" * 101}).allowed
