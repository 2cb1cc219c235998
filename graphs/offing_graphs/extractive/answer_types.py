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
    (r"\bwho(?:m|se)?\b", r"\b(?:by|author|maintain|team|lead|founder)|(?-i:\b[A-Z][a-z]+ [A-Z])"),
    (
        r"^(?:is|are|does|do|can|should|will|must)\b",
        r"\b(?:not|never|only|always|must|can|cannot|does|supports?|enables?|disabled?|default)\b",
    ),
)
"""Patterns of text that often answers a question of a type."""

_DATE = (
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|sunday|spring|summer|autumn|winter|century|before|after|during|once|when|if|until)\b"
)
_NUMBER = (
    r"\d|\b(?:none|null|unlimited|infinity|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
    r"thirty|forty|fifty|hundred|thousand|million|billion|dozen|half|quarter|third|once|twice|several|many|few|all|"
    r"default|no|single|double|both)\b"
)
_CHINESE_NUMBER = "[\\d零一二三四五六七八九十百千万亿两半多]"
_REQUIRED_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"^(?:in )?(?:when|what (?:year|date|century|month|day|decade))\b", _DATE),
    (
        r"^(?:about |approximately )?how (?:many|much|old|tall|far|long|fast)\b|"
        r"^what (?:percent|percentage|number|fraction)\b",
        _NUMBER,
    ),
    (r"^who(?:m|se)?\b", r"(?-i:[A-Z])|[^\x00-\x7f]"),
    ("何时|哪一?年|什么时候|几年|多少|几个|多久|多长", _CHINESE_NUMBER),
)
"""Patterns of text without which nothing can answer a question of a type: a date, a number or a name."""


def find_answer_pattern(question: str) -> re.Pattern[str] | None:
    """Return the pattern of text that often answers this question.

    `None` means that no pattern is known.
    """
    lowered = question.lower().strip()
    answer = next(
        (answer for question_pattern, answer in _ANSWER_PATTERNS if re.search(question_pattern, lowered)), None
    )
    return re.compile(answer, re.IGNORECASE) if answer else None


def find_required_pattern(question: str) -> re.Pattern[str] | None:
    """Return the pattern of a date, number or name without which no text answers this question.

    `None` means that any text may answer it.
    """
    lowered = question.lower().strip()
    answer = next((answer for pattern, answer in _REQUIRED_PATTERNS if re.search(pattern, lowered)), None)
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
