"""The LangChain adapter: a chat model, the registration of a LangGraph graph, and tools.

With them, an existing LangGraph graph runs on Offing without further changes.
"""

from offing.langchain.chat import OffingChatModel
from offing.langchain.durable_call import durable_call
from offing.langchain.errors import ModelCallError, RunStopped
from offing.langchain.graph import register_langgraph
from offing.langchain.named_models import UnknownModelError, use_models_by_name
from offing.langchain.tools import offing_tools

__all__ = [
    "ModelCallError",
    "OffingChatModel",
    "RunStopped",
    "UnknownModelError",
    "durable_call",
    "offing_tools",
    "register_langgraph",
    "use_models_by_name",
]
