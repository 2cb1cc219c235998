"""English patterns for the type of answer that a question asks for."""

import re

_LISTING = re.compile(r"(?:list|enumerate|name|which|what are|what \w+s (?:are|does|do|can))\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:what (?:is|are)|how (?:do|does)|explain|describe)\b|"
    r"[\w.-]+(?:\s[\w.-]+)?(?:\s(?:in|of|for|with)\s[\w.-]+|\s\([\w.-]+\))?$",
    re.IGNORECASE,
)
_STEPS = re.compile(
    r"(?:how (?:do|can|could|should|would|to) ?(?:i|we|you|one|they)?\b(?! \w+ (?:many|much))|show|.*\bexamples?\b)",
    re.I,
)
_ANSWER_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        r"\bwhy\b|\breasons?\b",
        r"\b(?:because|since|so that|in order to|due to|reason|avoid|prevent|therefore)\b",
    ),
    (
        r"\bhow (?:many|much|long|large|often|big|fast|deep|old)\b|\bdefaults?\b|\blimit\b|\btimeout\b|"
        r"\b(?:largest|biggest|maximum|minimum|smallest|longest)\b",
        r"\d|\bdefault\b|\bnone\b|\bnull\b|\bunlimited\b|\binfinity\b",
    ),
    (r"\bwhen\b|\bwhat year\b|\bsince\b", r"\b(?:when|before|after|once|until|if|since|\d{4}|v?\d+\.\d+)\b"),
    (
        r"\bhow\b",
        r"\b(?:by|use|using|call|set|pass|create|register|add|must|should|can be|via|through|to \w+)\b",
    ),
    (
        r"\b(?:difference|differ|versus|vs|compare[ds]?)\b",
        r"\b(?:unlike|whereas|while|instead|than|but|however|only|both)\b",
    ),
    (r"\bwhat (?:is|are)\b|\bdefine\b|\bmeaning\b", r"\b(?:is|are|means?|refers? to|represents?|provides?|called)\b"),
    (r"\bwho\b", r"\b(?:by|author|maintain|team|lead|founder)"),
    (
        r"^(?:is|are|does|do|can|should|will|must)\b",
        r"\b(?:not|never|only|always|must|can|cannot|does|supports?|enables?|disabled?|default)\b",
    ),
)
"""Patterns of text that often answers a question of a type."""


def find_answer_pattern(question: str) -> re.Pattern[str] | None:
    """Return the pattern of text that often answers this question.

    `None` means that no pattern is known.
    """
    lowered = question.lower().strip()
    answer = next(
        (answer for question_pattern, answer in _ANSWER_PATTERNS if re.search(question_pattern, lowered)), None
    )
    return re.compile(answer, re.IGNORECASE) if answer else None


def is_list_question(question: str) -> bool:
    """Return whether the question asks for several things."""
    return bool(_LISTING.match(question))


def is_definition_question(question: str) -> bool:
    """Return whether the question asks what something is or how it works.

    The first prose under its name usually says so.
    """
    return bool(_ABOUT.match(question))


def is_how_to_question(question: str) -> bool:
    """Return whether the question asks how to do something, which code can show."""
    return bool(_STEPS.match(question))
