"""A graph that runs the code that its question holds, and then code that reads what the first has left."""

from typing import Any, TypedDict

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from offing.sdk import DraftSection, DraftSentence, Graph, ReportDraft, RunContext, StopReason, ToolCall
from tests.workers.graphs import untyped

GRAPHS = "tests.workers.code_graph:computing"

PLOT = """
import struct, zlib
rows = [line.split(",") for line in open("tides.txt").read().split()]
print(sum(int(height) for _, height in rows))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\\0\\7")) + chunk(b"IEND", b"")
open("plot.png", "wb").write(png)
"""

AGAIN = "print(len(open('plot.png', 'rb').read()))"


class State(TypedDict):
    turn: int


async def compute(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    await ctx.begin_turn(1)
    await ctx.call_tool(ToolCall("run_python", {"code": PLOT, "files": ["tides.txt"]}), turn=1)
    await ctx.call_tool(ToolCall("run_python", {"code": AGAIN, "files": ["plot.png"]}), turn=1)
    sentence = DraftSentence(text="It was computed.", citations=())
    section = DraftSection(heading="Computed", sentences=(sentence,))
    await ctx.submit_report(ReportDraft(title="Computed", sections=(section,)), StopReason.NO_PROGRESS)
    return {"turn": 1}


def _build() -> Any:
    graph = untyped(State, context_schema=RunContext)
    graph.add_node("compute", compute)
    graph.add_edge(START, "compute")
    graph.add_edge("compute", END)
    return graph


computing = Graph(
    name="computing",
    title="Computing",
    description="Runs code twice.",
    version="computing-1",
    build=_build,
    initial_state=lambda _: {"turn": 0},
    roles=(),
    turn_counter="turn",
)
