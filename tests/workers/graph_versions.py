"""Editions of a graph for LangGraph alone in a folder, and workers that have the one that is there now."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.input_request import InputRequest, InputResponse
from offing.core.model import EngineConfig
from offing.core.run import RunStatus
from offing.services.graphs import GraphRegistry
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.runs import RunRequest, submit_run
from offing.storage.runs import RunRow
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import Worker

PROJECT = '[project.entry-points."offing.graphs"]\nessay = "essay:graph"\n'

FIRST = """
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from offing.langchain import OffingChatModel, register_langgraph

model = OffingChatModel("agent")


class Essay(TypedDict, total=False):
    topic: str
    parts: Annotated[list[str], operator.add]
    checked: list[str]
    text: str


class Part(TypedDict):
    name: str


async def write(words):
    return str((await model.ainvoke(words)).text)


async def plan(state):
    return {"checked": []}


async def part(state: Part):
    said = await write(f"Write about {state['name']}.")
    return {"parts": [said + interrupt({"question": "Which owls?", "draft": said}) if "owls" in said else said]}


def each_part(state):
    return [Send("part", {"name": name}) for name in ("cats", "owls", "dogs")]


async def title(state: Essay):
    return {"text": await write("Title of " + ", ".join(sorted(state["parts"])))}


async def approve(state: Essay):
    return {"checked": [*state["checked"], interrupt({"question": "Is it good?", "draft": state["text"]})]}


def finish(state: Essay):
    return {"text": f"{state['text']} ({len(set(state['parts']))} parts, {state['checked']})"}


def built(schema, finish, **more):
    review = StateGraph(schema)
    for name, node in {"title": title, "approve": approve}.items():
        review.add_node(name, node)
    review.add_edge(START, "title")
    review.add_edge("title", "approve")
    nodes = {"plan": plan, "part": part, "review": review.compile(), "finish": finish} | more
    graph = StateGraph(schema)
    for name, node in nodes.items():
        if node is not None:
            graph.add_node(name, node)
    part_node = next(name for name in nodes if name.startswith("part") and nodes[name] is not None)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", each_part, [part_node])
    graph.add_edge(part_node, "review")
    graph.add_edge("review", "finish")
    graph.add_edge("finish", END)
    return graph


def registered(graph, **more):
    return register_langgraph("essay", graph, code_path=__file__, question_key="topic", answer="text", **more)


graph = registered(built(Essay, finish))
"""
"""Branches, of which one asks a person, and a subgraph that asks, too."""

SECOND = (
    FIRST.rpartition("graph = ")[0]
    + """
class Longer(Essay, total=False):
    editor: str


def finish(state: Longer):
    return {"text": f"{state['text']} ({len(set(state['parts']))} parts, {state['checked']}) by {state['editor']}"}


def upgrade(version, state):
    return {**state, "editor": "Ada", "topic": state["topic"].upper()}


graph = registered(built(Longer, finish), upgrade_state=upgrade)
"""
)
"""With another key, which its last node needs."""

LINES: dict[str, Any] = {
    "speaks": True,
    "answers": [{"text": "lost"}],
    "cases": [
        {"contains": "about cats", "answer": {"text": "A cat."}},
        {"contains": "about owls", "answer": {"text": "Some owls: "}},
        {"contains": "about dogs", "answer": {"text": "A dog."}},
        {"contains": "Title of", "answer": {"text": "Beasts"}},
    ],
}


class Editions:
    """A folder with the graph, and a home in which no version is kept for long."""

    def __init__(self, folder: Path, platform: Platform, start: StartWorker) -> None:
        self._folder, self._platform, self._start, self._homes = folder, platform, start, 0
        self.publish(FIRST)

    def publish(self, code: str) -> None:
        """Put this edition in place of the one that is there. No worker that starts later has another."""
        package = self._folder / "source/essay"
        package.mkdir(parents=True, exist_ok=True)
        (package.parent / "pyproject.toml").write_text(PROJECT)
        (package / "__init__.py").write_text(code)
        self._homes += 1

    @property
    def _home(self) -> Path:
        return self._folder / f"home{self._homes}"

    def worker(self, **more: str) -> Worker:
        source = str(self._folder / "source")
        return self._start(OFFING_GRAPH_PATHS=source, OFFING_HOME=str(self._home), **more)

    def registry(self) -> GraphRegistry:
        return GraphRegistry(paths=str(self._folder / "source"), data_dir=self._home)

    async def begun(self, *, thread_id: UUID | None = None, **options: Any) -> RunRow:
        engines = {"agent": EngineConfig(engine="scripted", options=LINES | options)}
        request, p = RunRequest("beasts", "essay", engines=engines, thread_id=thread_id), self._platform
        return (await submit_run(p.database, p.notifier, p.tenant, request, graphs=self.registry())).run

    async def asks(self, run_id: UUID, words: str) -> InputRequest:
        """The open question of these words, once the run waits for it."""
        p = self._platform
        while True:
            row = await p.until(run_id, lambda row: row.status is RunStatus.WAITING or row.is_terminal)
            assert not row.is_terminal, row.error
            requests = [one.request for one in await list_input_requests(p.database, p.tenant, run_id) if one.pending]
            if right := [question for question in requests if question.input_prompt.prompt == words]:
                return right[0]
            await asyncio.sleep(0.02)

    async def say(self, run_id: UUID, question: InputRequest, text: str) -> None:
        p = self._platform
        await submit_response(
            p.database, p.notifier, p.tenant, run_id, question.seq, InputResponse(text=text), responded_by="somebody"
        )

    async def states(self, run_id: UUID) -> Sequence[tuple[int, str]]:
        """Superstep and id of the checkpoints of the run's own graph, in the order of writing."""
        async with self._platform.database.transaction(self._platform.tenant) as connection:
            sql = "select superstep, checkpoint_id from checkpoint where run_id = %s and ns = '' order by nth"
            return await (await connection.execute(sql, (run_id,))).fetchall()
