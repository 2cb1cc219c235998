"""The languages that have labels."""

from collections.abc import Mapping

from offing.core.report_labels.chinese import CHINESE
from offing.core.report_labels.english import ENGLISH
from offing.core.report_labels.labels import ReportLabels

LABELS: Mapping[str, ReportLabels] = {"en": ENGLISH, "zh": CHINESE}
"""Labels by the language of a tag, without script and region."""


def find_labels(language: str) -> ReportLabels:
    """Return the labels for a report in the language of this tag. A language without labels has the English ones."""
    return LABELS.get(language.partition("-")[0].lower(), ENGLISH)
