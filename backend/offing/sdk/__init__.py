"""The public API for graph authors.

A graph is a LangGraph graph whose nodes call roles and tools and submit reports through a
`RunContext`. Each call is journaled, so that a node that runs again gets the recorded results.
"""

from offing.core.claim_check import DraftClaimCheck, DraftConflict, DraftJudgment
from offing.core.claim_passages import ClaimPassage, ClaimToJudge, merge_passages
from offing.core.draft_check import DraftCheck, DraftProblem, ProblemSentence
from offing.core.follow_up import FollowUp, FollowUpKind, KindChooser
from offing.core.interaction import Interaction
from offing.core.model import EngineFailure, FailureKind, InvalidOutput, Message, Usage
from offing.core.report import (
    ClaimVerdict,
    DraftCitation,
    DraftSection,
    DraftSentence,
    Evidence,
    Layout,
    Report,
    ReportDraft,
    ReportRevision,
    ReportStatus,
)
from offing.core.report_style import ReportLength, ReportStyle
from offing.core.run import Budget, Depth, RunStatus, RunUsage, StopReason
from offing.core.step import Step, StepDraft, StepKind, shorten_line
from offing.core.text_repair import RepairedText, remove_code_fence, remove_thoughts
from offing.core.tokens import CompletionSpan, SpanKind
from offing.core.tool import SideEffect, SourceSpan, ToolOutput, ToolResult, ToolSpec, ToolStatus
from offing.core.trajectory import BoundaryReason
from offing.core.untrusted_block import UNTRUSTED_BLOCK_RULE, wrap_untrusted
from offing.sdk.child_runs import CHILD_RUN, ChildFinding, ChildRequest, ChildResult, ChildRunsUnavailable
from offing.sdk.context import RoleReply, RunContext, RunInfo, ToolCall
from offing.sdk.earlier_report import EARLIER_REPORT, EarlierReport, FollowUpResult
from offing.sdk.graph import Graph, StateView, compute_content_hash
from offing.sdk.human_input import HumanInputMixin, NoResponderError, PlanProposal, PlanReview, ReviewDecision
from offing.sdk.observation import tool_result_from_step
from offing.sdk.prompt_format import PromptFormat
from offing.sdk.role import (
    DEFAULT_ANSWER_TOKENS,
    REPORT_ANSWER_TOKENS,
    Headline,
    ModelFreeFunction,
    OutputChoice,
    Role,
    RuleContext,
    RuleFunction,
)
from offing.sdk.thread_memory import THREAD_NOTES, THREAD_SEARCH, ThreadFinding, ThreadNote
from offing.sdk.tool import CustomTool, ToolArgs, ToolFailedError, tool

__all__ = [
    "CHILD_RUN",
    "DEFAULT_ANSWER_TOKENS",
    "EARLIER_REPORT",
    "REPORT_ANSWER_TOKENS",
    "THREAD_NOTES",
    "THREAD_SEARCH",
    "UNTRUSTED_BLOCK_RULE",
    "BoundaryReason",
    "Budget",
    "ChildFinding",
    "ChildRequest",
    "ChildResult",
    "ChildRunsUnavailable",
    "ClaimPassage",
    "ClaimToJudge",
    "ClaimVerdict",
    "CompletionSpan",
    "CustomTool",
    "Depth",
    "DraftCheck",
    "DraftCitation",
    "DraftClaimCheck",
    "DraftConflict",
    "DraftJudgment",
    "DraftProblem",
    "DraftSection",
    "DraftSentence",
    "EarlierReport",
    "EngineFailure",
    "Evidence",
    "FailureKind",
    "FollowUp",
    "FollowUpKind",
    "FollowUpResult",
    "Graph",
    "Headline",
    "HumanInputMixin",
    "Interaction",
    "InvalidOutput",
    "KindChooser",
    "Layout",
    "Message",
    "ModelFreeFunction",
    "NoResponderError",
    "OutputChoice",
    "PlanProposal",
    "PlanReview",
    "ProblemSentence",
    "PromptFormat",
    "RepairedText",
    "Report",
    "ReportDraft",
    "ReportLength",
    "ReportRevision",
    "ReportStatus",
    "ReportStyle",
    "ReviewDecision",
    "Role",
    "RoleReply",
    "RuleContext",
    "RuleFunction",
    "RunContext",
    "RunInfo",
    "RunStatus",
    "RunUsage",
    "SideEffect",
    "SourceSpan",
    "SpanKind",
    "StateView",
    "Step",
    "StepDraft",
    "StepKind",
    "StopReason",
    "ThreadFinding",
    "ThreadNote",
    "ToolArgs",
    "ToolCall",
    "ToolFailedError",
    "ToolOutput",
    "ToolResult",
    "ToolSpec",
    "ToolStatus",
    "Usage",
    "compute_content_hash",
    "merge_passages",
    "remove_code_fence",
    "remove_thoughts",
    "shorten_line",
    "tool",
    "tool_result_from_step",
    "wrap_untrusted",
]
