"""Cost of a node compared with plain LangGraph: the same unchanged graph, in memory and on a worker with Postgres."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.graph import END, START, MessagesState, StateGraph

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.langchain import OffingChatModel, register_langgraph
from offing.services.runs import RunRequest
from tests.bench.bare import Bare
from tests.bench.measurement import Measurement
from tests.bench.platform import Client

NODES = 200
"""Nodes per run, each a superstep."""


class Counted(MessagesState):
    seen: int


def build_chain(model: BaseChatModel | None) -> Any:
    """A loop of one node, which calls the model if there is one and keeps nothing of the answer."""

    async def work(state: Counted) -> dict[str, Any]:
        if model is not None:
            await model.ainvoke([("user", f"Say something, {state.get('seen', 0)}.")])
        return {"seen": state.get("seen", 0) + 1}

    async def onward(state: Counted) -> str:
        return "work" if state["seen"] < NODES else END

    builder: Any = StateGraph(Counted)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", onward, ["work", END])
    return builder


asking = register_langgraph("bench_plain_asking", lambda: build_chain(OffingChatModel("agent")), code_path=__file__)
silent = register_langgraph("bench_plain_silent", lambda: build_chain(None), code_path=__file__)


def run_request(graph: str) -> RunRequest:
    text = EngineConfig(engine="scripted", options={"answers": [{"text": "Something."}]})
    return RunRequest("Measure", graph, budget=Budget(max_turns=NODES + 1), engines={"agent": text})


async def per_node(client: Client) -> list[Measurement]:
    """Measure the wall time of a node. In Offing it has a checkpoint in Postgres and a journaled call."""
    return [
        await _compared(client, "wall time of a node of a plain LangGraph graph; bare in memory", silent.name, None),
        await _compared(
            client,
            "the same with a model call in it; bare in memory",
            asking.name,
            FakeListChatModel(responses=["Something."]),
        ),
    ]


async def _compared(client: Client, what: str, graph: str, model: BaseChatModel | None) -> Measurement:
    inputs: dict[str, Any] = {"messages": [("user", "Measure")], "seen": 0}
    timed = await client.timed(run_request(graph))
    ours = (timed.result - timed.first_event) / NODES
    bare = await Bare(build_chain(model).compile()).run(inputs) / NODES
    return Measurement(what, (ours,), "ms", (bare,))
