"""The context that the agent edits: its limits, its records, and the edits with their steps.

Edits do not read the content of records. The system text and the question are not records,
so nothing can remove them. Source of the rules: "Memory as Action" (arXiv 2510.12635),
where one action prunes and writes.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from offing.sdk import StepDraft, StepKind, shorten_line
from offing_graphs.memact.schemas import PRUNE, WRITE, Act, PruneArgs, WriteArgs
from offing_graphs.shared.prompt_room import compute_prompt_tokens

MIN_SUMMARY_TOKENS = 2_300
"""Tokens that are reserved for the request for a summary and for the summary.

Policies write at most 2,048 tokens by default. A longer summary of another model takes more of the next context.
"""
UNREQUESTED_SUMMARY = "No summary was asked for; nothing was changed."
POSTPONED_ANSWER = "A person wrote to you meanwhile, so the answer has not been handed over yet."
DISCARDED_RECORD = "Taken out of the context, which was full; what the tool did stands."

_ID = re.compile(r"r[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """The limits of a context in estimated tokens.

    Raises `ValueError` if the sizes leave no room for a summary.
    """

    max_context_tokens: int
    """Maximum tokens of a prompt, called W in the README. No call is made with a longer prompt."""
    max_observation_tokens: int
    """Maximum tokens of one observation. The rest of a tool result is omitted and counted."""
    allows_edits: bool
    """Whether the agent has the actions `prune` and `write`."""
    summarize_at_tokens: int | None = None
    """Size from which the context is summarized, called L in the README.

    `None` means that it is never summarized.
    """
    max_summaries: int = 0
    """Maximum number of summaries, called S in the README."""
    shows_room: bool = True
    """Whether an agent that edits its context sees how much of it is used and how many turns are left."""

    def __post_init__(self) -> None:
        if (
            self.summarize_at_tokens is not None
            and self.max_context_tokens - self.summarize_at_tokens < MIN_SUMMARY_TOKENS
        ):
            raise ValueError(f"window: leave at least {MIN_SUMMARY_TOKENS} tokens above full for the summary.")

    @property
    def max_prompt_tokens(self) -> int:
        """Return the maximum tokens of the prompt of an action."""
        return self.max_context_tokens if self.summarize_at_tokens is None else self.summarize_at_tokens - 1


EDITING_CONFIG = ContextConfig(max_context_tokens=20_000, max_observation_tokens=4_000, allows_edits=True)
SUMMARIZING_CONFIG = ContextConfig(
    max_context_tokens=16_000,
    max_observation_tokens=3_000,
    allows_edits=False,
    summarize_at_tokens=13_500,
    max_summaries=7,
)


MAX_CONTEXT_TOKENS = 128_000
"""Maximum tokens of a context, however large the window of the model is."""
MAX_OBSERVATION_TOKENS = 16_000
OBSERVATION_FRACTION = 0.2
"""Fraction of a context that one observation may take."""
REQUEST_TOKENS = 200
"""Tokens of the request for a summary."""
NEARLY_FULL_FRACTION = 0.75
"""Fraction of a context above which the agent is warned."""


def fit_config(config: ContextConfig, context_tokens: int | None) -> ContextConfig:
    """Return the configuration with the sizes for a context window.

    `None` means that the window is unknown, so that the sizes stay the same.
    """
    if context_tokens is None:
        return config
    prompt = min(MAX_CONTEXT_TOKENS, compute_prompt_tokens(context_tokens, Act))
    observation = min(MAX_OBSERVATION_TOKENS, math.floor(prompt * OBSERVATION_FRACTION))
    if config.summarize_at_tokens is None:
        return replace(config, max_context_tokens=prompt, max_observation_tokens=observation)
    return replace(
        config,
        max_context_tokens=prompt + MIN_SUMMARY_TOKENS,
        max_observation_tokens=observation,
        summarize_at_tokens=prompt - REQUEST_TOKENS,
    )


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """The location of a record in the context: its turn, and the seqs of its steps.

    A record of several tool calls has one location for each of them, one after another.
    """

    turn: int
    action_seq: int
    observation_seq: int

    @property
    def id(self) -> str:
        return build_record_id(self.turn)


class HasId(Protocol):
    @property
    def id(self) -> str: ...


RecordT = TypeVar("RecordT", bound=HasId)


@dataclass(frozen=True, slots=True)
class ContextEdit(Generic[RecordT]):
    """A context after an edit. The record of the edit itself follows it, whatever the outcome."""

    context: tuple[RecordT, ...]
    ok: bool
    """Whether the edit succeeded. False means that nothing was changed."""
    deleted_ids: tuple[str, ...]
    unknown_ids: tuple[str, ...]
    """Requested ids that are not ids of records of the context."""
    message: str
    """The outcome in one sentence, for the agent."""

    @property
    def breaks_prefix(self) -> bool:
        """Return whether the new context no longer starts with the previous one."""
        return bool(self.deleted_ids)


def build_record_id(turn: int) -> str:
    """Return the id of the record of a turn."""
    return f"r{turn}"


def parse_record_turn(record_id: str) -> int:
    """Return the turn of a record id. 0 means that the id is not a record id."""
    return int(record_id[1:]) if _ID.fullmatch(record_id) else 0


def apply_edit(
    context: Sequence[RecordT], operation: str, delete_ids: Sequence[str] = (), note: str = ""
) -> ContextEdit[RecordT]:
    """Return the context without the records in `delete_ids`.

    The record of the edit keeps `note`. The edit fails and changes nothing if `prune` names no
    existing record or if `write` has an empty note.
    """
    if operation == WRITE:
        delete_ids = ()
    known = {record.id for record in context}
    deleted = tuple(dict.fromkeys(id for id in delete_ids if id in known))
    unknown = tuple(dict.fromkeys(id for id in delete_ids if id not in known))
    ok = bool(deleted) if operation == PRUNE else bool(note.strip())
    deleted_ids = frozenset(deleted)
    remaining = tuple(record for record in context if record.id not in deleted_ids)
    return ContextEdit(remaining, ok, deleted, unknown, _describe_outcome(operation, ok, deleted, unknown, note))


def _describe_outcome(
    operation: str, ok: bool, deleted_ids: Sequence[str], unknown_ids: Sequence[str], note: str
) -> str:
    unknown = f" There is no record {', '.join(unknown_ids[:8])}." if unknown_ids else ""
    if not ok:
        need = "name records to remove by their ids, such as r1" if operation == PRUNE else "give a note"
        return f"Nothing was changed: {need}.{unknown}"
    removed = f"Removed {', '.join(deleted_ids)}." if deleted_ids else ""
    noted = "The note is kept in this record." if note.strip() else ""
    return " ".join(part for part in (removed, noted) if part) + unknown


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """The outcome of a turn that was not a tool call.

    `context` is the list of records after the turn, without the turn's own record.
    """

    operation: str
    context: tuple[RecordLocation, ...]
    ok: bool
    message: str
    """The outcome in one sentence, for the agent."""
    deleted_ids: tuple[str, ...] = ()
    unknown_ids: tuple[str, ...] = ()
    note: str = ""

    @property
    def breaks_prefix(self) -> bool:
        return bool(self.deleted_ids)

    def draft_step(self, turn: int) -> StepDraft:
        """Return a step draft that stores the edit.

        `remaining` in its payload lists the ids of the remaining earlier records.
        """
        payload = {
            "op": self.operation,
            "id": build_record_id(turn),
            "ok": self.ok,
            "deleted": list(self.deleted_ids),
            "unknown": list(self.unknown_ids),
            "note": self.note,
            "remaining": list(dict.fromkeys(record.id for record in self.context)),
            "message": self.message,
        }
        title = shorten_line(f"{self.operation}: {self.note}" if self.note else f"{self.operation}: {self.message}")
        return StepDraft(StepKind.MEMORY, title, payload, "memory", shorten_line(self.message), self.ok, turn=turn)


def apply_memory_action(action: Act, records: Sequence[RecordLocation]) -> MemoryEdit:
    """Apply the memory action of a turn.

    Invalid arguments and unknown ids change nothing.
    """
    try:
        delete, note = _parse_args(action)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"])) or action.tool
        return MemoryEdit(
            action.tool, tuple(records), False, shorten_line(f"Nothing was changed: {field}: {problem['msg']}", 300)
        )
    done = apply_edit(records, action.tool, delete, note)
    return MemoryEdit(action.tool, done.context, done.ok, done.message, done.deleted_ids, done.unknown_ids, note)


def reject_summary(records: Sequence[RecordLocation]) -> MemoryEdit:
    return MemoryEdit("summary", tuple(records), False, UNREQUESTED_SUMMARY)


def postpone_answer(records: Sequence[RecordLocation]) -> MemoryEdit:
    return MemoryEdit("answer", tuple(records), False, POSTPONED_ANSWER)


def draft_discard(locations: Sequence[RecordLocation]) -> StepDraft:
    """Return a step draft for a record that was discarded before the agent saw it.

    `locations` are those of the record. The action stays recorded but is excluded from training.
    """
    record, *more = locations
    payload = {"op": "discard", "id": record.id, "action": record.action_seq, "observation": record.observation_seq}
    payload |= {"more_observations": [one.observation_seq for one in more]} if more else {}
    payload |= {"ok": True, "message": DISCARDED_RECORD, "trainable": False}
    title, detail = f"discard: {record.id}", shorten_line(DISCARDED_RECORD)
    return StepDraft(
        StepKind.MEMORY, title, payload, "memory", detail, turn=record.turn, excluded_role_call_seq=record.action_seq
    )


def _parse_args(action: Act) -> tuple[tuple[str, ...], str]:
    if action.tool == PRUNE:
        prune = PruneArgs.model_validate(action.args)
        return prune.delete_ids, prune.note
    return (), WriteArgs.model_validate(action.args).note
