"""A graph that nobody advances: tests of the API play its worker."""

from typing import Any

from pydantic import BaseModel

from offing.sdk import Graph, Headline, Message, Role, StepKind


class Asked(BaseModel):
    question: str


class Said(BaseModel):
    word: str


def _render(given: Asked) -> tuple[Message, ...]:
    return (Message("user", (given.question,)),)


SPEAKER: Role[Asked, Said] = Role(
    "speaker", Asked, Said, _render, lambda said: Headline(said.word), StepKind.PLAN, "plan", lambda _: Said(word="so")
)


def _build() -> Any:
    from langgraph.graph import END, START, StateGraph

    def speak(state: dict[str, Any]) -> dict[str, Any]:
        return state

    builder = StateGraph(dict)
    builder.add_node("speak", speak)
    builder.add_edge(START, "speak")
    builder.add_edge("speak", END)
    return builder


quiet = Graph("quiet", "Quiet", "Does nothing.", "v1", _build, lambda run: {}, (SPEAKER,))
