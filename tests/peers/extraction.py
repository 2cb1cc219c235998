"""trustcall: a schema that is filled in, and repaired by patches where the model's arguments do not fit."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import re
import warnings
from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trustcall import create_extractor

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, unexpected


class Person(BaseModel):
    """What is known of somebody."""

    first: str
    age: int
    towns: list[str] = []


class Known(MessagesState):
    person: dict[str, Any]


extractor = create_extractor(OffingChatModel("agent"), tools=[Person], tool_choice="Person")


async def extract(state: Known) -> dict[str, Any]:
    existing = {"Person": state["person"]} if state.get("person") else None
    result = await extractor.ainvoke({"messages": state["messages"], "existing": existing})
    person: Any = result["responses"][0]
    return {"person": person.model_dump(), "messages": [{"role": "assistant", "content": person.model_dump_json()}]}


builder = StateGraph(Known)
builder.add_node(extract)
builder.add_edge(START, "extract")
builder.add_edge("extract", END)

graph = register_langgraph("extraction", builder.compile(), code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if "PatchFunctionErrors" in received.tools:
        patch = [{"op": "replace", "path": "/age", "value": 36}]
        return calls("PatchFunctionErrors", json_doc_id=doc_id(received), planned_edits="A number.", patches=patch)
    if "PatchDoc" in received.tools:
        patch = [{"op": "add", "path": "/towns/-", "value": "Oslo"}]
        return calls("PatchDoc", json_doc_id="Person", planned_edits="Add it.", patches=patch)
    return calls("Person", first="Ada", age="thirty-six") if received.tools else unexpected(received)


def doc_id(received: ReceivedPrompt) -> str:
    """The id of the call that has to be repaired, as the request for a patch names it."""
    return re.findall(r"call_\d+_\d+", received.everything)[-1]


peer = Peer(
    name="extraction",
    question="Ada is thirty-six.",
    says=lines,
    answer='{"first":"Ada","age":36,"towns":[]}',
    follow="She lives in Oslo.",
    follow_answer='{"first":"Ada","age":36,"towns":["Oslo"]}',
)
