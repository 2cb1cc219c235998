"""What a graph author imports, and all that a graph may know of the platform.

A graph is a LangGraph graph whose nodes reach the world through a `RunContext`: they call roles, tools and the
report desk, and each of these is journalled, so that a node that runs again reads back what it already did.
"""

from offing.core.blocks import RULE as DATA_RULE
from offing.core.blocks import block as data_block
from offing.core.model import EngineFailure, FailureKind, Message, Unusable, Usage
from offing.core.report import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Report,
    ReportDraft,
    ReportStatus,
)
from offing.core.run import Budget, RunStatus, Spent, StopReason
from offing.core.step import Step, StepDraft, StepKind, shortened
from offing.core.tokens import SpanKind, TextSpan
from offing.core.tool import Effect, Span, ToolOutput, ToolResult, ToolSpec, ToolStatus
from offing.core.trajectory import Fracture
from offing.sdk.asking import AsksPeople, Plan, Review, Unanswered, Verdict
from offing.sdk.children import CHILD_RUN, ChildRequest, ChildResult, Finding, NoChildren
from offing.sdk.context import RoleReply, RunContext, RunView, ToolCall
from offing.sdk.conversation import CONVERSATION, NOTES, Note, Recalled
from offing.sdk.form import Form
from offing.sdk.graph import Graph, content_hash
from offing.sdk.observation import result_of
from offing.sdk.role import Headline, ModelFree, Role, Rule, Seat
from offing.sdk.tool import OwnTool, ToolArgs, ToolFailed, tool

__all__ = [
    "CHILD_RUN",
    "CONVERSATION",
    "DATA_RULE",
    "NOTES",
    "AsksPeople",
    "Budget",
    "ChildRequest",
    "ChildResult",
    "DraftCitation",
    "DraftSection",
    "DraftSentence",
    "Effect",
    "EngineFailure",
    "Evidence",
    "FailureKind",
    "Finding",
    "Form",
    "Fracture",
    "Graph",
    "Headline",
    "Message",
    "ModelFree",
    "NoChildren",
    "Note",
    "OwnTool",
    "Plan",
    "Recalled",
    "Report",
    "ReportDraft",
    "ReportStatus",
    "Review",
    "Role",
    "RoleReply",
    "Rule",
    "RunContext",
    "RunStatus",
    "RunView",
    "Seat",
    "Span",
    "SpanKind",
    "Spent",
    "Step",
    "StepDraft",
    "StepKind",
    "StopReason",
    "TextSpan",
    "ToolArgs",
    "ToolCall",
    "ToolFailed",
    "ToolOutput",
    "ToolResult",
    "ToolSpec",
    "ToolStatus",
    "Unanswered",
    "Unusable",
    "Usage",
    "Verdict",
    "content_hash",
    "data_block",
    "result_of",
    "shortened",
    "tool",
]
