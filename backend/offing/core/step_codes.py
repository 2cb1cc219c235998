"""Codes of what steps say, so that a client can say it in the reader's language."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SummaryValue = bool | int | str | list[int] | list[str]
"""A parameter of a summary."""


class StepSummaryCode(StrEnum):
    """What a step says. The web UI has a text in each language for each code."""

    STARTED = "started"
    """A worker claimed the run."""
    PAUSED = "paused"
    RESUMED = "resumed"
    """A person resumed the run."""
    RECOVERED = "recovered"
    """The run continued after its worker stopped responding. `count`: recorded calls that were reused."""
    FORKED = "forked"
    """`seq`: the last step of the run `run` that was copied."""
    UPGRADED = "upgraded"
    """The run continued with another version of its graph: `before` and `after`."""
    ENDED = "ended"
    """`reason`: the stop reason. `error`: what went wrong; empty means nothing."""
    MESSAGES_READ = "messages_read"
    """`seqs`: the steps of the user messages that the next prompts contain."""
    PLAN_CHANGED = "plan_changed"
    """A person set the parts of the plan: `parts`."""
    PLAN_READ = "plan_read"
    """`seq`: the step of the change that was read. `parts`: the parts of the plan."""
    PLAN_EDITED = "plan_edited"
    """A person edited the parts of the question before the research: `parts`."""
    QUESTION_CLARIFIED = "question_clarified"
    """`response`: what the person answered."""
    CONTINUED = "continued"
    """The run continues although its verifier would stop. `parts`: those that are open."""
    ROLE_SKIPPED = "role_skipped"
    """The role `role` was not asked, because no answer could change how the run ends."""
    ARGUMENTS_PLANNED = "arguments_planned"
    """The plan named the arguments of the call, so that no role was asked for them."""
    WINDOW_LEARNED = "window_learned"
    """The model of the role `role` holds about `tokens` tokens, as its provider's error said."""
    FOLLOW_UP = "follow_up"
    """`kind` of the follow-up, who chose it (`chosen_by`) and `why`; empty means no reason."""
    MODE_CHOSEN = "mode_chosen"
    """The router chose the mode `mode`."""
    MODE_CHANGED = "mode_changed"
    """The router continues in the mode `mode`. `parts`: those that are open."""
    VERDICT = "verdict"
    """The verifier judged `covered` of `parts` parts as answered. `stop`: whether the run is to stop. `omitted`:
    passages that its prompt did not show."""
    CLAIMS_CHECKED = "claims_checked"
    """The number of sentences with each verdict (`supported`, `partly`, …) and of `conflicts`."""
    SENTENCES_REVISED = "sentences_revised"
    """`corrected` and `removed`: numbers of sentences."""
    QUESTIONS_TO_PERSON = "questions_to_person"
    """`count` of what is unclear. 0 means nothing."""
    REPORT = "report"
    """`supported` of `sentences` sentences have a source, with `citations` citations."""
    MEMORY = "memory"
    """`passages` that a call returned, and how many of them are new: `fresh`."""
    LIBRARY_SEARCHED = "library_searched"
    """`passages` from `sources` documents."""
    WEB_SEARCHED = "web_searched"
    """`pages` that were found.

    Codes of tools have three more: `origin`, where content from outside comes from; empty means that it comes from this
    installation. `number` of `size` calls that were made at once; 0 means alone.
    """
    SOURCE_READ = "source_read"
    """Characters `start` to `end` of `total`."""
    CHILD_RUN_ENDED = "child_run_ended"
    """`reason`: the stop reason, or the status. `passages` that it found."""
    CHILD_RUNS_DENIED = "child_runs_denied"
    """`reason`, in words."""
    REPORTS_RECALLED = "reports_recalled"
    """`sentences` of earlier reports of the thread."""
    NOTES_RECALLED = "notes_recalled"
    """`count` of notes of earlier runs of the thread."""
    TOOL_POLICY_RESTRICTED = "tool_policy_restricted"
    TOOL_POLICY_KEPT = "tool_policy_kept"
    """A restriction of the tool policy was rejected. `reason`, in words."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """What a step says."""

    code: StepSummaryCode
    parameters: Mapping[str, SummaryValue] = field(default_factory=dict[str, SummaryValue])
