"""Who made a version of a report that the run itself did not write."""

from enum import StrEnum
from uuid import UUID

NO_MODEL_AUTHOR = "the graph's own writer, without a model"
"""Author of a report that no role call wrote."""


class ReportEditor(StrEnum):
    """What kind of editor made a version."""

    PERSON = "person"
    """A person, in the web UI or with an API key."""
    MODEL = "model"
    """A follow-up, with an engine and a model."""
    NO_MODEL = "no_model"
    """A follow-up whose graph wrote it without a model."""


def find_editor(edited_by: str | None, follow_up_run: UUID | None) -> ReportEditor | None:
    """Return what kind of editor made a version. `None` means that the run wrote it."""
    if edited_by is None:
        return None
    if follow_up_run is None:
        return ReportEditor.PERSON
    return ReportEditor.NO_MODEL if edited_by == NO_MODEL_AUTHOR else ReportEditor.MODEL
