"""A graph whose worker is lost in tests while a model writes. Each attempt of its node writes another text."""

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from offing.langchain import register_langgraph

untyped: Any = StateGraph
"""Its stubs leave some types open."""


class Report(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    topic: str
    folder: str
    """Where attempts are counted. The file `late` lets each attempt tell that it lives, `open` lets the node end."""


def prepare(_: Report) -> Any:
    get_stream_writer()({"progress": "prepared"})
    return {"topic": "salt"}


def _wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


async def write(state: Report) -> Any:
    folder = Path(state.get("folder", ""))
    with (folder / "attempts").open("a") as attempts:
        attempts.write("again ")
    number = (folder / "attempts").read_text().count("again")
    get_stream_writer()({"progress": "writes"})
    model = GenericFakeChatModel(messages=iter([AIMessage(describe_attempt(number))]))
    written = await model.ainvoke(state.get("messages", []))
    await asyncio.to_thread(_wait_for_file, folder / "late")
    get_stream_writer()({"lives": number})
    await asyncio.to_thread(_wait_for_file, folder / "open")
    return {"messages": [written]}


def conclude(_: Report) -> Any:
    return {"topic": "pepper"}


def describe_attempt(number: int) -> str:
    """Return what the model writes in an attempt of its node."""
    return f"Attempt {number} tells this"


def build_report() -> Any:
    builder = untyped(Report).add_node("prepare", prepare).add_node("write", write).add_node("conclude", conclude)
    return builder.add_edge(START, "prepare").add_edge("prepare", "write").add_edge("write", "conclude").compile()


def build_only_report() -> Any:
    return untyped(Report).add_node("write", write).add_edge(START, "write").compile()


report = register_langgraph("report", build_report, code_path=__file__)
only_report = register_langgraph("only-report", build_only_report, code_path=__file__)

LOSS_GRAPHS = f"{__name__}:report,{__name__}:only_report"
