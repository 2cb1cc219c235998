"""A draft that a person approves or sends back, with a word on the way about how far it is."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportReturnType=false

from typing import Literal

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from offing.langchain import OffingChatModel, register_langgraph

model = OffingChatModel("author")


class Draft(MessagesState):
    tries: int


async def write(state: Draft) -> Draft:
    writer = get_stream_writer()
    writer({"progress": f"draft {state.get('tries', 0) + 1} is being written"})
    answer = await model.ainvoke(state["messages"])
    writer({"progress": "written"})
    return {"messages": [answer], "tries": state.get("tries", 0) + 1}


async def human_review(state: Draft) -> Command[Literal["write", "__end__"]]:
    verdict = interrupt({"question": "Shall this be sent?", "draft": state["messages"][-1].text})
    if verdict == "yes":
        return Command(goto=END)
    return Command(goto="write", update={"messages": [HumanMessage(f"Change it: {verdict}")]})


builder = StateGraph(Draft)
builder.add_node("write", write)
builder.add_node("human_review", human_review)
builder.add_edge(START, "write")
builder.add_edge("write", "human_review")

graph = register_langgraph(
    "plain_review", builder.compile(checkpointer=MemorySaver()), code_path=__file__, models=("author",)
)
