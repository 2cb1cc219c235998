"""The structured list of changes between two versions of a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class SentenceChange:
    """A sentence that is not the same in both versions."""

    kind: ChangeKind
    text: str
    """Text in the new version. For a removed sentence, the text in the old version."""
    before: str = ""
    """Text of a changed sentence in the old version. If it equals `text`, only the citations differ."""


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that is not the same in both versions."""

    kind: ChangeKind
    heading: str
    """Heading in the new version. For a removed section, the heading in the old version."""
    before: str = ""
    """Heading of a changed section in the old version, if it was different. Empty means that it was the same."""
    sentences: tuple[SentenceChange, ...] = ()
    """Its sentences that are not the same, in the order of the new version, then those that were removed.

    Empty for a section that was removed or only renamed.
    """


@dataclass(frozen=True, slots=True)
class ReportChanges:
    """Differences of a report from the version before it, found by comparison."""

    answer: tuple[SentenceChange, ...] = ()
    """Change of the short answer. Empty means that it is the same."""
    sections: tuple[SectionChange, ...] = ()
    """Sections that were added or changed, in the order of the new version, then those that were removed."""
    kept_sections: int = 0
    """Number of sections that are the same in both versions."""
    title_before: str = ""
    """Title of the old version, if it was different. Empty means that it is the same."""

    @property
    def is_empty(self) -> bool:
        """Whether both versions state the same with the same citations."""
        return not (self.answer or self.sections or self.title_before)


def changes_from_json(stored: Mapping[str, Any]) -> ReportChanges:
    """Return changes from their JSON form, as `dataclasses.asdict` makes it."""
    return ReportChanges(
        tuple(map(_sentence_from_json, stored["answer"])),
        tuple(map(_section_from_json, stored["sections"])),
        int(stored["kept_sections"]),
        stored["title_before"],
    )


def _section_from_json(stored: Mapping[str, Any]) -> SectionChange:
    sentences = tuple(map(_sentence_from_json, stored["sentences"]))
    return SectionChange(ChangeKind(stored["kind"]), stored["heading"], stored["before"], sentences)


def _sentence_from_json(stored: Mapping[str, Any]) -> SentenceChange:
    return SentenceChange(ChangeKind(stored["kind"]), stored["text"], stored["before"])
