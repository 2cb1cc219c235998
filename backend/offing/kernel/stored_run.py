"""What is stored of a run, as a replay reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offing.core.checkpoint import StoredCheckpoint
from offing.core.model import EngineConfig, Message
from offing.core.report import Report
from offing.core.step import CallKey, Step
from offing.core.tool_policy import ToolPolicy
from offing.kernel.langgraph_invocation import GraphInvocation
from offing.sdk import RunInfo
from offing.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class ReplayOpening:
    """What a run of LangGraph's clients began with."""

    graph_input: Any
    """LangGraph's input: values, a command, or `None` to continue from the state of the thread."""
    invocation: GraphInvocation
    start: StoredCheckpoint | None
    """The state of its thread. `None` means that the thread had none."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Everything of a run that its graph may see."""

    run: RunInfo
    steps: tuple[Step, ...]
    stop_reason: str = ""
    """Why the run ended, a StopReason."""
    is_done: bool = True
    """Whether the run ended on its own. Then all of its calls are recorded."""
    tool_policy: ToolPolicy | None = None
    tools: Sequence[Tool] = ()
    engines: Mapping[str, EngineConfig] = field(default_factory=dict[str, EngineConfig])
    prompts: Mapping[int, tuple[Message, ...]] = field(default_factory=dict[int, Any])
    """Recorded prompts by step. A missing prompt is not compared."""
    report: Report | None = None
    """`None` means that the report is not compared."""
    final_state: Mapping[str, Any] | None = None
    """The last saved state. `None` means that the state is not compared."""
    opening: ReplayOpening | None = None
    """What the run began with. `None` means its question. A run with an opening ends at its graph's interrupts."""

    @property
    def steps_by_key(self) -> dict[CallKey, Step]:
        return {step.call_key: step for step in self.steps if step.call_key is not None}
