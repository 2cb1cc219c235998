"""A run of a graph for LangGraph alone is carried over to another version: what stays, and what is in the way.

Each graph is executed by LangGraph itself over the stored checkpoints, first in one version and then in the other.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

import operator
from typing import Annotated, Any

import pytest
from langgraph.channels import DeltaChannel, UntrackedValue
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import claimed
from tests.storage.graph_upgrade import AT, Build, UpgradableRun, Upgrade

LONG = "x" * 1_000

make_typed_dict: Any = TypedDict


class State(TypedDict, total=False):
    text: str
    log: Annotated[list[str], operator.add]


class Wider(State, total=False):
    added: str


@pytest.fixture
async def run(pool: Database) -> UpgradableRun:
    return UpgradableRun(pool, (await claimed(pool, LOCAL_TENANT)).fence)


def build_chain(schema: Any, *nodes: Any) -> Build:
    """Nodes one after the other, each under the name of its function or graph."""

    def build() -> Any:
        graph: Any = StateGraph(schema)
        names = [getattr(node, "__name__", None) or node.name for node in nodes]
        for name, node in zip(names, nodes, strict=True):
            graph.add_node(name, node, **({"input_schema": schema} if hasattr(node, "__name__") else {}))
        for one, after in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(one, after)
        return graph

    return build


def begin(state: State) -> State:
    return {"text": LONG, "log": ["begun"]}


def ask(state: State) -> State:
    return {"log": [interrupt("Which?")]}


def end(state: Wider) -> Wider:
    return {"log": [f"{state.get('added')} {len(state.get('text', ''))}"]}


FIRST, SECOND = build_chain(State, begin, ask, end), build_chain(Wider, begin, ask, end)


async def test_a_run_that_asks_has_its_new_state_and_hears_the_answer(run: UpgradableRun) -> None:
    waiting = await run.play(FIRST, {"text": ""})
    assert await run.carry(SECOND, lambda _, state: {**state, "added": LONG, "text": LONG[1:]}) == ""
    assert (await run.answer(SECOND, waiting, "yes"))["log"] == ["begun", "yes", f"{LONG} 999"]


async def test_the_state_before_stays_in_the_history(run: UpgradableRun) -> None:
    before, stored = await run.play(FIRST, {"text": ""}), await run.rows()
    assert await run.carry(SECOND, lambda _, state: {**state, "text": "short"}) == ""
    saver: Any = FencedCheckpointer(run.pool, run.fence, content_types=())
    graph = SECOND().compile(checkpointer=saver)
    past = [snapshot async for snapshot in graph.aget_state_history(AT)]
    assert [one.values.get("text") for one in past] == ["short", LONG, "", None]
    assert past[0].config["configurable"]["checkpoint_id"] == before.config["configurable"]["checkpoint_id"]
    assert past[0].parent_config == past[1].config
    rows = await run.rows()
    assert [at for _, at in rows[:-1]] == [at for _, at in stored]
    assert rows[-1][0] == stored[-1][0]
    assert rows[-1][1] > stored[-1][1]


async def test_a_key_that_the_upgrade_leaves_out_is_not_set(run: UpgradableRun) -> None:
    waiting = await run.play(FIRST, {"text": ""})
    assert await run.carry(SECOND, lambda _, state: {"text": state["text"]}) == ""
    assert (await run.answer(SECOND, waiting, "yes"))["log"] == ["yes", "None 1000"]


def renamed_ask(state: State) -> State:
    return {"log": [interrupt("Which?")]}


UPGRADES: list[tuple[Upgrade, str]] = [
    (lambda _, state: None, "its upgrade function rejected the state"),
    (
        lambda _, state: state | {"other": 1, "more": 2},
        "its upgrade function returned wrong or missing keys: more, other",
    ),
    (lambda _, state: {"text": 1 / 0}, "its upgrade function raised ZeroDivisionError: division by zero"),
    (lambda _, state: {"text": "x" * 17_000_000}, "The state of the graph has 17"),
]


@pytest.mark.parametrize(("upgrade", "why"), UPGRADES)
async def test_a_state_that_cannot_be_had_leaves_the_run_as_it_was(
    run: UpgradableRun, upgrade: Upgrade, why: str
) -> None:
    before = await run.play(FIRST, {"text": ""})
    assert (await run.carry(SECOND, upgrade)).startswith(why)
    assert await run.play(FIRST, None) == before


async def test_a_counter_of_the_run_continues_and_is_no_part_of_the_state(run: UpgradableRun) -> None:
    counted: Any = make_typed_dict("Counted", {"text": str, "count": Annotated[int, UntrackedValue]}, total=False)

    def first(state: Any) -> Any:
        return {"text": "begun", "count": 7}

    def last(state: Any) -> Any:
        return {"text": f"{interrupt('Which?')} {state['count']}"}

    build = build_chain(counted, first, last)
    waiting = await run.play(build, {"text": ""})
    assert await run.carry(build, lambda _, state: state if list(state) == ["text"] else None) == ""
    assert (await run.answer(build, waiting, "yes"))["text"] == "yes 7"


async def test_a_version_that_cannot_be_built_leaves_the_run_as_it_was(run: UpgradableRun) -> None:
    before = await run.play(FIRST, {"text": ""})
    assert await run.carry(lambda: 1 / 0) == "the new version cannot be built: ZeroDivisionError: division by zero"
    assert await run.play(FIRST, None) == before


def parted(*, parts: str = "part", key: str = "log") -> Build:
    """Branches, of which one asks and the others finish."""
    fields: Any = {"text": str, key: Annotated[list[str], operator.add]}
    schema: Any = make_typed_dict("Parted", fields, total=False)

    def part(state: Any) -> Any:
        return {key: [interrupt("Which?") if state["n"] == 1 else f"part {state['n']}"]}

    def build() -> Any:
        graph: Any = StateGraph(schema)
        graph.add_node("begin", lambda _: {"text": "begun"})
        graph.add_node(parts, part)
        graph.add_edge(START, "begin")
        graph.add_conditional_edges("begin", lambda _: [Send(parts, {"n": n}) for n in range(3)], [parts])
        return graph

    return build


def joined(*, target: str = "last", others: tuple[str, ...] = ("quick", "asks")) -> Build:
    """Two nodes side by side, one of which asks, and one that waits for both."""

    def build() -> Any:
        graph: Any = StateGraph(State)
        for name in (*others, "asks"):
            graph.add_node(
                name, ask if name == "asks" else lambda _: {"log": ["quick"]}
            ) if name not in graph.nodes else 0
        graph.add_node(target, lambda _: {"log": ["last"]})
        for name in graph.nodes:
            if name != target:
                graph.add_edge(START, name)
        graph.add_edge(list(others), target)
        return graph

    return build


def nested(*nodes: Any, schema: Any = State, memory: bool | None = None) -> Build:
    """A graph whose second node is a graph."""

    def build() -> Any:
        inner = build_chain(schema, *nodes)().compile(checkpointer=memory, name="inner")
        return build_chain(State, begin, inner)()

    return build


def hidden(*, name: str = "hides") -> Build:
    """A node that makes a graph and calls it."""

    async def hides(state: State) -> Any:
        return await build_chain(State, ask)().compile().ainvoke(state)

    hides.__name__ = name
    return build_chain(State, begin, hides)


def with_join() -> Any:
    """`ask` is also led to by an edge that waits for two nodes."""
    graph = FIRST()
    graph.add_node("other", begin)
    graph.add_edge(["begin", "other"], "ask")
    return graph


class Strict(BaseModel):
    """A state that cannot be without its keys."""

    text: str
    added: str
    log: Annotated[list[str], operator.add] = []


REFUSING = make_typed_dict("Logged", {"log": list[str]})

OBSTACLES: dict[str, tuple[Build, Build, str]] = {
    "next node": (FIRST, build_chain(State, begin, renamed_ask), "its next node 'ask' is not in the new version"),
    "branch": (parted(), parted(parts="slice"), "its next node 'part' is not in the new version"),
    "written key": (parted(), parted(key="words"), "its finished node 'part' wrote to 'log', which is not"),
    "join": (joined(), joined(target="end"), "it has reached a join of quick, asks for 'last', which"),
    "edges": (FIRST, with_join, "its node 'ask' is reached through other edges in the new version"),
    "class": (
        FIRST,
        build_chain(Strict, begin, ask),
        "the new version cannot read the upgraded state: ValidationError",
    ),
    "graph": (nested(ask), FIRST, "its next node 'inner' is not in the new version"),
    "node within": (nested(begin, ask), nested(begin, renamed_ask), "within 'inner', its next node 'ask' is not"),
    "key within": (nested(ask), nested(ask, schema=REFUSING), "within 'inner', its state key 'text' is not"),
    "hidden": (hidden(), hidden(), "it waits in a graph that its node 'hides' called, which"),
}


@pytest.mark.parametrize("name", OBSTACLES)
async def test_what_the_new_version_does_not_have_is_named_and_the_run_stays(run: UpgradableRun, name: str) -> None:
    first, second, why = OBSTACLES[name]
    before = await run.play(first, {"text": ""})
    assert (await run.carry(second, lambda _, state: {})).startswith(why)
    assert (await run.play(first, None)).interrupts == before.interrupts != ()


@pytest.mark.parametrize(
    ("build", "log"),
    [
        (parted(), ["part 0", "yes", "part 2"]),
        (joined(), ["yes", "quick", "last"]),
        (nested(ask), ["begun", "begun", "yes"]),
        (nested(begin, ask), ["begun", "begun", "begun", "yes"]),
        (nested(begin, ask, memory=True), ["begun", "begun", "begun", "yes"]),
    ],
)
async def test_what_had_finished_stays_and_the_answer_reaches_the_node(
    run: UpgradableRun, build: Build, log: list[str]
) -> None:
    waiting = await run.play(build, {"text": ""})
    assert await run.carry(build, lambda _, state: {**state, "text": "carried"}) == ""
    ended = await run.answer(build, waiting, "yes")
    assert sorted(ended["log"]) == sorted(log)


async def test_a_subgraph_that_waits_for_nobody_begins_again(run: UpgradableRun) -> None:
    def fails(state: State) -> State:
        return {"log": [str(1 / 0)]}

    def again(state: Wider) -> Wider:
        return {"log": ["again"]}

    def fails_no_more(state: Wider) -> Wider:
        return {"log": ["done"]}

    fails_no_more.__name__ = "fails"
    first = nested(begin, fails)
    assert (await run.play(first, {"text": ""})).next == ("inner",)
    second = nested(again, fails_no_more)
    assert await run.carry(second) == ""
    assert (await run.play(second, None)).values["log"] == ["begun", "begun", "again", "done"]


def grown(*, rebuilt: bool = True) -> Build:
    log: Any = Annotated[list[str], DeltaChannel(appended)] if rebuilt else Annotated[list[str], operator.add]
    schema: Any = make_typed_dict("Grown", {"log": log, "text": str}, total=False)
    return build_chain(schema, begin, ask, lambda_end)


def lambda_end(state: Any) -> Any:
    return {"log": [state["text"]]}


@pytest.mark.parametrize("content", [(), None])
@pytest.mark.parametrize("carried", [["before", "begun"], ["cut"]])
async def test_a_delta_channel_is_given_and_taken_whole(
    run: UpgradableRun, carried: list[str], content: tuple[type, ...] | None
) -> None:
    run.content = content
    waiting = await run.play(grown(), {"text": "", "log": ["before"]})
    assert await run.carry(grown(), lambda _, state: {"text": "new", "log": carried} if state["log"] else None) == ""
    assert await run.carry(grown(), lambda _, state: state if state["log"] == carried else None) == ""
    assert (await run.answer(grown(), waiting, "yes"))["log"] == [*carried, "yes", "new"]


def appended(value: list[str], new: Any) -> list[str]:
    return [*value, *(item for items in new for item in items)]


class Filled(BaseModel):
    """A state that cannot be read where its channel is empty."""

    text: str
    log: Annotated[list[str], DeltaChannel(appended), Field(min_length=1)]


async def test_the_new_version_is_shown_the_whole_value_of_a_delta_channel(run: UpgradableRun) -> None:
    waiting = await run.play(build_chain(Filled, begin, ask), {"text": "", "log": ["before"]})
    assert await run.carry(build_chain(Filled, begin, ask)) == ""
    assert (await run.answer(build_chain(Filled, begin, ask), waiting, "yes"))["log"] == ["before", "begun", "yes"]


async def test_a_delta_channel_that_is_none_any_more_is_named(run: UpgradableRun) -> None:
    await run.play(grown(), {"text": "", "log": ["before"]})
    assert await run.carry(grown(rebuilt=False)) == "its state key 'log' is a DeltaChannel, but not in the new version"


async def test_a_task_of_a_function_is_done_again_and_the_answer_reaches_the_function(run: UpgradableRun) -> None:
    done: list[str] = []

    def version(name: str) -> Build:
        @task
        async def work(n: int) -> str:
            done.append(name)
            return f"{name} {n}"

        @entrypoint()
        async def flow(text: str) -> str:
            return f"{await work(1)}, {interrupt('Which?')}"

        return lambda: flow

    first, second = version("first"), version("second")
    waiting = await run.play(first, "text")
    assert await run.carry(second) == ""
    assert await run.answer(second, waiting, "yes") == "second 1, yes"
    assert done == ["first", "second"]


async def test_a_node_that_called_a_tool_with_an_effect_keeps_the_run_from_being_carried_over(
    run: UpgradableRun,
) -> None:
    await run.play(FIRST, {"text": ""})
    await run.declare("__pregel_pull/ask", 2)
    assert (
        await run.carry(SECOND) == "the tool 'send_mail', which has a side effect, was called after its last checkpoint"
    )


async def test_a_finished_branch_may_have_called_a_tool_with_an_effect(run: UpgradableRun) -> None:
    await run.play(parted(), {"text": ""})
    await run.declare("__pregel_push/0/False", 2)
    assert await run.carry(parted()) == ""
