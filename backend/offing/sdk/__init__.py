"""What a graph author imports, and all that a graph may know of the platform.

A graph is a LangGraph graph whose nodes reach the world through a `RunContext`: they call roles, tools and the
report desk, and each of these is journalled, so that a node that runs again reads back what it already did.
"""

from offing.core.model import EngineFailure, FailureKind, Message, Usage
from offing.core.report import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Report,
    ReportDraft,
    ReportStatus,
)
from offing.core.run import Budget, Spent, StopReason
from offing.core.step import Step, StepDraft, StepKind, shortened
from offing.core.tool import Effect, Span, ToolOutput, ToolResult, ToolSpec, ToolStatus
from offing.sdk.context import RoleReply, RunContext, RunView, ToolCall
from offing.sdk.graph import Graph, content_hash
from offing.sdk.role import Headline, ModelFree, Role

__all__ = [
    "Budget",
    "DraftCitation",
    "DraftSection",
    "DraftSentence",
    "Effect",
    "EngineFailure",
    "Evidence",
    "FailureKind",
    "Graph",
    "Headline",
    "Message",
    "ModelFree",
    "Report",
    "ReportDraft",
    "ReportStatus",
    "Role",
    "RoleReply",
    "RunContext",
    "RunView",
    "Span",
    "Spent",
    "Step",
    "StepDraft",
    "StepKind",
    "StopReason",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "ToolSpec",
    "ToolStatus",
    "Usage",
    "content_hash",
    "shortened",
]
