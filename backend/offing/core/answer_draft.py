"""Answer drafts: the text of role calls while it is written. They are shown live and never recorded."""

from dataclasses import dataclass

MAX_DRAFT_CHARS = 100_000
"""Maximum number of code points of a draft. Later text of the answer is not shown until the answer is recorded."""

MAX_DRAFTS_PER_RUN = 16
"""Maximum number of drafts of one run at a time. Drafts of further parallel calls are not shown."""


@dataclass(frozen=True, slots=True)
class AnswerDraft:
    """The draft of one attempt of a role call. It has no text of its own."""

    call_id: str
    """Identifies the role call in its run. It is the same on replay."""
    fence: int
    """Number of the claim that writes the draft. A draft of a later claim replaces those of earlier ones."""
    attempt: int
    """Number of the attempt in the claim, from 1."""
    role: str
    label: str = ""
    """Word in the timeline. Empty means that there is none."""
    is_unverified: bool = False
    """Whether the text may become part of a report, and its claims are checked only when it is complete."""


@dataclass(frozen=True, slots=True)
class DraftPart:
    """Text that continues a draft."""

    draft: AnswerDraft
    offset: int
    """Number of code points of the draft before this text. At 0 the text replaces any earlier draft of the call."""
    text: str


@dataclass(frozen=True, slots=True)
class DraftEnd:
    """The end of a draft: its answer was recorded, or its attempt was lost."""

    call_id: str
    """Empty means all drafts of the run."""
    fence: int
