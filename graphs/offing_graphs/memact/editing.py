"""Memory actions as they are carried out and put on record; what they do to a context is in `context`."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from offing.sdk import StepDraft, StepKind, shortened
from offing_graphs.memact.context import PRUNE, edited, record_id
from offing_graphs.memact.shapes import Act, PruneArgs, WriteArgs
from offing_graphs.memact.state import Place

UNASKED = "No summary was asked for; nothing was changed."
SPOKEN_TO = "A person wrote to you meanwhile, so the answer has not been handed over yet."
DISCARDED = "Taken out of the context, which was full; what the tool did stands."


@dataclass(frozen=True, slots=True)
class Note:
    """What a turn did that was no tool call. `context`: the live records after it, its own left out."""

    op: str
    context: tuple[Place, ...]
    ok: bool
    said: str
    """For the agent."""
    deleted: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    note: str = ""

    @property
    def splits(self) -> bool:
        return bool(self.deleted)

    def step(self, turn: int) -> StepDraft:
        """It as a step to append. `kept`: ids of the records that were there before and still are."""
        payload = {
            "op": self.op,
            "id": record_id(turn),
            "ok": self.ok,
            "deleted": list(self.deleted),
            "unknown": list(self.unknown),
            "note": self.note,
            "kept": [place.id for place in self.context],
            "said": self.said,
        }
        title = shortened(f"{self.op}: {self.note}" if self.note else f"{self.op}: {self.said}")
        return StepDraft(StepKind.MEMORY, title, payload, "memory", shortened(self.said), self.ok, turn=turn)


def noted(act: Act, live: Sequence[Place]) -> Note:
    """The memory action of a turn. Arguments that its schema refuses change nothing, like ids that are not there."""
    try:
        delete, note = _arguments(act)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or act.tool
        return Note(act.tool, tuple(live), False, shortened(f"Nothing was changed: {place}: {problem['msg']}", 300))
    done = edited(live, act.tool, delete, note)
    return Note(act.tool, done.context, done.ok, done.said, done.deleted, done.unknown, note)


def summary_unasked(live: Sequence[Place]) -> Note:
    return Note("summary", tuple(live), False, UNASKED)


def answered_too_early(live: Sequence[Place]) -> Note:
    return Note("answer", tuple(live), False, SPOKEN_TO)


def discarded(place: Place) -> StepDraft:
    """That a record was left out of the context before the agent saw it: its action is on record, and not trained."""
    payload = {"op": "discard", "id": place.id, "action": place.action, "observation": place.observation}
    payload |= {"ok": True, "said": DISCARDED, "trainable": False}
    title, said = f"discard: {place.id}", shortened(DISCARDED)
    return StepDraft(StepKind.MEMORY, title, payload, "memory", said, turn=place.turn, untrains=place.action)


def _arguments(act: Act) -> tuple[tuple[str, ...], str]:
    if act.tool == PRUNE:
        prune = PruneArgs.model_validate(act.args)
        return prune.delete_ids, prune.note
    return (), WriteArgs.model_validate(act.args).note
