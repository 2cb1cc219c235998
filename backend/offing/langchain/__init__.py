"""What an existing LangGraph graph needs to run here: a chat model, a line that registers it, and tools of ours.

The only home of the exchange with LangChain's shapes. Knows no engine, no storage and no worker.
"""

from offing.langchain.chat import OffingChatModel
from offing.langchain.endings import ModelFailed, RunStopped
from offing.langchain.graph import plain_graph
from offing.langchain.journal import journalled
from offing.langchain.named_models import UnknownModel, models_by_name
from offing.langchain.tools import offing_tools

__all__ = [
    "ModelFailed",
    "OffingChatModel",
    "RunStopped",
    "UnknownModel",
    "journalled",
    "models_by_name",
    "offing_tools",
    "plain_graph",
]
