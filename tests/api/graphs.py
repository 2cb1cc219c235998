"""A graph that nobody advances: tests of the API play its worker."""

from typing import Any, TypedDict

from pydantic import BaseModel

from offing.sdk import Graph, Headline, Message, Role, StepKind


class Asked(BaseModel):
    question: str


class Said(BaseModel):
    word: str


def _render(inputs: Asked) -> tuple[Message, ...]:
    return (Message("user", (inputs.question,)),)


SPEAKER: Role[Asked, Said] = Role(
    "speaker",
    Asked,
    Said,
    _render,
    lambda output: Headline(output.word),
    StepKind.PLAN,
    "plan",
    lambda _: Said(word="so"),
)


class State(TypedDict):
    word: str


def speak_turn(state: State) -> State:
    return state


def _build() -> Any:
    from langgraph.graph import END, START, StateGraph

    builder: Any = StateGraph(State)
    return builder.add_node("speak", speak_turn).add_edge(START, "speak").add_edge("speak", END)


quiet = Graph("quiet", "Quiet", "Does nothing.", "v1", _build, lambda run: {}, (SPEAKER,))
