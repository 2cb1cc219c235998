"""What kind of answer a question asks for, and how such answers read: English patterns, and nothing of any document."""

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
_WANTED: tuple[tuple[str, str], ...] = (
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
"""What a question of a kind is often answered with."""


def wanted(question: str) -> re.Pattern[str] | None:
    """What an answer to this question often holds. None: nothing is known."""
    lowered = question.lower().strip()
    answer = next((answer for asked, answer in _WANTED if re.search(asked, lowered)), None)
    return re.compile(answer, re.IGNORECASE) if answer else None


def asks_for_list(question: str) -> bool:
    """It asks for several things."""
    return bool(_LISTING.match(question))


def asks_what_it_is(question: str) -> bool:
    """It asks what something is or how it works, which the passage under its name says."""
    return bool(_ABOUT.match(question))


def asks_for_steps(question: str) -> bool:
    """It asks how to do something, which code can show."""
    return bool(_STEPS.match(question))
