"""Builders for trying memory as action: runs over a small library, acts as an agent says them, calls in segments."""

from collections.abc import Sequence
from typing import Any

from offing.core.model import Message
from offing.core.trajectory import Tail, goes_on
from offing.sdk import Graph, ReportDraft, ToolSpec
from offing_graphs.memact import chat
from offing_graphs.memact.config import TOKENS_FOR_A_SUMMARY, Config
from offing_graphs.memact.context import PRUNE, WRITE
from offing_graphs.memact.graph import configured
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.parts.shapes import Card
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import SPECS as LIBRARY
from tests.graphs.stand_in import Engine, Said, StandIn

QUESTION = "How often is the tide gauge calibrated?"

SEARCH = Act(tool="search_library", args={"query": "tide gauge calibrated"})

DONE = Act(answer=ReportDraft(title="t", answer="Twice a year. [E1]", sections=()))


def run(question: str = QUESTION, **more: Any) -> StandIn:
    return StandIn(harbour(), question, **more)


def acts(*said: Act) -> dict[str, Engine]:
    """An agent that does these, then the last again and again."""
    left = list(said)

    def agent(_given: AgentInput) -> Act:
        return left.pop(0) if len(left) > 1 else left[0]

    return {"agent": agent}


def prune(*ids: str, note: str = "") -> Act:
    return Act(tool=PRUNE, args={"delete_ids": list(ids), "note": note})


def write(note: str) -> Act:
    return Act(tool=WRITE, args={"note": note})


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in messages]


def rows(said: Sequence[Said]) -> list[list[Said]]:
    """The calls in segments, checked: every prompt continues its segment's text, or says why it does not."""
    found: list[list[Said]] = []
    for call in said:
        tail = found[-1][-1] if found else None
        ended = Tail(0, 0, tail.seq, tail.messages, tail.text, None) if tail else None
        continues = ended is not None and goes_on(ended, call.messages, None) is None
        assert continues == (call.fracture is None and ended is not None), texts(call.messages)
        if continues:
            found[-1].append(call)
        else:
            found.append([call])
    return found


def trained(row: Sequence[Said]) -> list[str]:
    """Completions of a row that stand where its prompts say that they were sampled."""
    last = [*texts(row[-1].messages), ("assistant", row[-1].text)]
    places = [len(call.messages) for call in row]
    return [text for n, (role, text) in enumerate(last) if n in places and role == "assistant"]


def summing(room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY) -> Graph:
    """The flow with room for so many tokens of records."""
    return configured("small", "", "", limits(room, summaries, question, specs))


def limits(room: int, summaries: int = 7, question: str = QUESTION, specs: tuple[ToolSpec, ...] = LIBRARY) -> Config:
    cards = tuple(Card(name=t.name, description=t.description, parameters=t.args.model_json_schema()) for t in specs)
    empty = AgentInput(question=question, tools=cards, window=10_000, edits=False, turn=1, remaining=1)
    full = chat.size(empty) + room
    return Config(full + TOKENS_FOR_A_SUMMARY, 400, False, full, summaries)


def summarising(turns: int) -> dict[str, Any]:
    """An agent that searches, sums up when asked, and answers in turn `turns`."""

    def agent(given: AgentInput) -> Act:
        if given.ask == "summary":
            return Act(summary=f"summary {given.stage} of [E1]")
        return DONE if given.turn >= turns else SEARCH

    return {"agent": agent}


def blank(**more: Any) -> AgentInput:
    return AgentInput(question=QUESTION, tools=(), window=9, edits=True, turn=1, remaining=1, **more)
