"""Builders for trying memory as action: runs over a small library, acts as an agent says them, calls in segments."""

from collections.abc import Sequence
from typing import Any

from offing.core.model import Message
from offing.core.trajectory import SegmentTail, find_boundary
from offing.sdk import Graph, ReportDraft, ToolSpec
from offing_graphs.memact import prompts
from offing_graphs.memact.context import MIN_SUMMARY_TOKENS, ContextConfig
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.schemas import PRUNE, WRITE, Act, AgentInput
from offing_graphs.shared.schemas import ToolCard
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import SPECS as LIBRARY
from tests.graphs.in_memory_context import Engine, InMemoryContext, RoleCall

QUESTION = "How often is the tide gauge calibrated?"

SEARCH = Act(tool="search_library", args={"query": "tide gauge calibrated"})

DONE = Act(answer=ReportDraft(title="t", answer="Twice a year. [E1]", sections=()))


def run(question: str = QUESTION, **more: Any) -> InMemoryContext:
    return InMemoryContext(harbour(), question, **more)


def acts(*message: Act) -> dict[str, Engine]:
    """An agent that does these, then the last again and again."""
    left = list(message)

    def agent(_inputs: AgentInput) -> Act:
        return left.pop(0) if len(left) > 1 else left[0]

    return {"agent": agent}


def prune(*ids: str, note: str = "") -> Act:
    return Act(tool=PRUNE, args={"delete_ids": list(ids), "note": note})


def write(note: str) -> Act:
    return Act(tool=WRITE, args={"note": note})


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in messages]


def rows(message: Sequence[RoleCall]) -> list[list[RoleCall]]:
    """The calls in segments, checked: every prompt continues its segment's text, or says why it does not."""
    results: list[list[RoleCall]] = []
    for call in message:
        tail = results[-1][-1] if results else None
        ended = SegmentTail(0, 0, tail.seq, tail.messages, tail.text, None) if tail else None
        continues = ended is not None and find_boundary(ended, call.messages, None) is None
        assert continues == (call.boundary_reason is None and ended is not None), texts(call.messages)
        if continues:
            results[-1].append(call)
        else:
            results.append([call])
    return results


def trained(row: Sequence[RoleCall]) -> list[str]:
    """Completions of a row that stand where its prompts say that they were sampled."""
    last = [*texts(row[-1].messages), ("assistant", row[-1].text)]
    positions = [len(call.messages) for call in row]
    return [text for n, (role, text) in enumerate(last) if n in positions and role == "assistant"]


def summing(room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY) -> Graph:
    """The graph with room for a given number of tokens of records."""
    return configure_graph("small", "", "", limits(room, summaries, question, specs))


def limits(
    room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY
) -> ContextConfig:
    cards = tuple(
        ToolCard(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in specs
    )
    empty = AgentInput(
        question=question, tools=cards, max_context_tokens=10_000, allows_edits=False, turn=1, remaining=1
    )
    full = prompts.estimate_size(empty) + room
    return ContextConfig(full + MIN_SUMMARY_TOKENS, 400, False, full, summaries)


def summarizing(turns: int) -> dict[str, Any]:
    """An agent that searches, sums up when asked, and answers in turn `turns`."""

    def agent(inputs: AgentInput) -> Act:
        if inputs.request == "summary":
            return Act(summary=f"summary {inputs.stage} of [E1]")
        return DONE if inputs.turn >= turns else SEARCH

    return {"agent": agent}


def blank(**more: Any) -> AgentInput:
    return AgentInput(question=QUESTION, tools=(), max_context_tokens=9, allows_edits=True, turn=1, remaining=1, **more)
