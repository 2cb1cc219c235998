"""open_deep_research: a supervisor, researchers side by side, tools that ask a model, models that it builds by name.

It imports MCP's adapters of an older kind, which it does not use here; empty modules replace them during the import.
The web is a function.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportMissingParameterType=false

import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import mcp

from offing.langchain import register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says, together

ADAPTERS = ("langchain_mcp_adapters", "langchain_mcp_adapters.client")


@contextmanager
def stand_in_modules(modules: Mapping[str, ModuleType]) -> Generator[None]:
    """Put modules in place of uninstalled ones.

    `patch.dict(sys.modules)` would also remove what other threads import meanwhile, such as Celery's modules in a
    worker.
    """
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            sys.modules.pop(name, None)


def imported() -> Any:
    stood_in = {name: ModuleType(name) for name in ADAPTERS}
    stood_in[ADAPTERS[1]].__dict__["MultiServerMCPClient"] = object
    error = patch.object(mcp, "McpError", mcp.MCPError, create=True)
    with stand_in_modules(stood_in), error, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from open_deep_research import deep_researcher, utils

    async def search(queries: list[str], **_: Any) -> list[dict[str, Any]]:
        page = {"url": "https://example.org/hall", "title": "Halls", "content": "1907", "raw_content": "Built in 1907."}
        return [{"query": query, "results": [page]} for query in queries]

    utils.tavily_search_async = search
    return deep_researcher.deep_researcher


graph = register_langgraph(
    "research", imported, code_path=__file__, models=("agent",), models_by_name={"*": "agent"}, answer="final_report"
)


ANSWERS = {
    "ClarifyWithUser": calls("ClarifyWithUser", need_clarification=False, question="", verification="I begin."),
    "ResearchQuestion": calls("ResearchQuestion", research_brief="The age of the hall and of the mill."),
    "Summary": calls("Summary", summary="Built in 1907.", key_excerpts="1907"),
}
"""To whatever has to be answered in a form."""

BOTH = together(
    calls("ConductResearch", research_topic="The hall."), calls("ConductResearch", research_topic="The mill.")
)


def lines(received: ReceivedPrompt) -> Reply:
    if form := next((ANSWERS[tool] for tool in received.tools if tool in ANSWERS), None):
        return form
    if "research supervisor" in received.system_text:
        return calls("ResearchComplete") if received.answered else BOTH
    if received.tools:
        return says("I know enough.") if received.answered else calls("tavily_search", queries=[received.last])
    return says("Built in 1907." if "clean up these findings" in received.last else "Both are from 1907.")


peer = Peer(
    name="research",
    question="How old are the hall and the mill?",
    says=lines,
    answer="Both are from 1907.",
    follow="Again, please.",
    follow_answer="Both are from 1907.",
    tools=("tavily_search", "tavily_search"),
)
