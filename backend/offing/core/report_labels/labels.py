"""The words that the files of a report have besides its own text, as one value per language."""

from collections.abc import Mapping
from dataclasses import dataclass

from offing.core.follow_up import FollowUpKind, KindChooser
from offing.core.report import ClaimVerdict
from offing.core.report_changes import ChangeKind


@dataclass(frozen=True, slots=True)
class Counted:
    """A template whose form depends on a count, which it names as `{count}`."""

    one: str
    other: str

    def fill(self, count: int, **values: object) -> str:
        """Return the text for a count. Raises KeyError if a value of the template is missing."""
        return (self.one if count == 1 else self.other).format(count=count, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLabels:
    """The words of one language.

    `{name}` in a template stands for a value. A template has the same names in all languages.
    """

    language: str
    """Language tag."""
    between_sentences: str
    """What stands between two sentences."""
    comma: str
    """What stands between the things of a list."""
    semicolon: str
    """What stands between longer things of a list."""
    between_positions: str
    """What stands between the page, the section and the lines of a position."""
    full_stops: str
    """Characters that end a sentence. The first is appended to a text that has none."""

    # Headings.
    untitled: str
    limits: str
    images: str
    changes: str
    conflicts: str
    sources: str
    claims: str

    # Whether the report is complete, and why the run ended.
    complete: str
    partial: str
    stop_reasons: Mapping[str, str]
    """Sentence for each reason to stop."""
    other_stop_reason: str
    nothing_supported: str
    answered_with_limits: str
    """Ending of a complete report with limits, which may say that a part of the question was not answered."""

    # Claims.
    verdicts: Mapping[ClaimVerdict, str]
    not_judged: str
    counted_verdict: str
    cited_sentences: str
    conclusions: str
    claim_heads: tuple[str, str, str, str, str, str]
    """Columns of the claim table: verdict, that of the rules, that of the checker, sources, sentence, reasons."""
    follows_from: str
    quoted: str

    # Marks of a sentence.
    no_source: str
    passage_only: str
    rejections: Mapping[str, str]
    """Reasons why a citation was rejected, by their codes in `REJECTION_TEXTS`."""
    not_quoted: str
    edited: str
    conclusion_from: str
    checker_objects: str
    checker_objects_by: str
    because: str

    # Who wrote, edited and judged the report.
    written_by: str
    authors: Mapping[str, str]
    """Names of authors that are no models, by their codes in `RUN_TEXTS`."""
    edited_by_follow_up: str
    follow_up_request: str
    saved: str
    saved_in_web_ui: str
    saved_with_key: str
    saved_by: str
    edit_note: str
    judged_by_rules: str
    checker_failed: str
    judged_by_checker: str
    others_not_judged: str
    unverified: str
    no_reason_given: str

    # Conflicts between sources.
    conflicts_one_source: str
    conflicts_by_rules: str
    conflicts_by_checker: str
    conflicts_in_groups: str
    no_conflict: str
    source_says: str
    matter: str
    conflict: str
    found_by_checker: str
    found_by_rules: str

    # Sources and positions in them.
    by_author: str
    dated: str
    retrieved: str
    added: str
    months: tuple[str, ...]
    date: str
    date_of_month: str
    date_of_year: str
    positions: Mapping[str, str]
    """Parts of the position of a citation, by their codes in `POSITION_TEXTS`."""

    # Images and characters.
    images_left_out: Counted
    damaged_image: str
    missing_characters: str
    more_characters: str

    # Follow-ups and what they changed.
    follow_up: str
    follow_up_kinds: Mapping[FollowUpKind, str]
    other_follow_up: str
    choosers: Mapping[KindChooser, str]
    deleted_documents: Counted
    title_changed: str
    short_answer: str
    nothing_changed: str
    sections_unchanged: Counted
    section_changes: Mapping[ChangeKind, str]
    before: str
    added_sentences: Counted
    section_without_heading: str
    sentence_changes: Mapping[ChangeKind, str]
    other_sources: str
