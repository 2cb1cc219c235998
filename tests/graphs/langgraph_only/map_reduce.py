"""Subjects are found, each is written about in a branch of its own, and the best of what was written is chosen."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import operator
from typing import Annotated, Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

from offing.langchain import OffingChatModel, register_langgraph

model = OffingChatModel("writer")


class Subjects(BaseModel):
    """Subjects that belong to a topic."""

    subjects: list[str]


class Best(BaseModel):
    """The best verse, by its number from 0."""

    id: int


class Overall(TypedDict):
    topic: str
    subjects: list[str]
    verses: Annotated[list[str], operator.add]
    best: str


class OneSubject(TypedDict):
    subject: str


def generate_subjects(state: Overall) -> dict[str, Any]:
    result = cast(Subjects, model.with_structured_output(Subjects).invoke(f"Name subjects about {state['topic']}."))
    return {"subjects": result.subjects}


def write_verse(state: OneSubject) -> dict[str, Any]:
    answer = model.invoke(f"Write a verse about {state['subject']}.")
    return {"verses": [str(answer.text)]}


def each_subject(state: Overall) -> list[Send]:
    return [Send("write_verse", {"subject": subject}) for subject in state["subjects"]]


def best_verse(state: Overall) -> dict[str, Any]:
    listed = "\n".join(state["verses"])
    chosen = cast(Best, model.with_structured_output(Best).invoke(f"Choose the best of these verses:\n{listed}"))
    return {"best": state["verses"][chosen.id]}


builder = StateGraph(Overall)
builder.add_node("generate_subjects", generate_subjects)
builder.add_node("write_verse", cast(Any, write_verse))
builder.add_node("best_verse", best_verse)
builder.add_edge(START, "generate_subjects")
builder.add_conditional_edges("generate_subjects", each_subject, ["write_verse"])
builder.add_edge("write_verse", "best_verse")
builder.add_edge("best_verse", END)

graph = register_langgraph(
    "plain_map_reduce", builder, code_path=__file__, models=("writer",), question_key="topic", answer="best"
)
