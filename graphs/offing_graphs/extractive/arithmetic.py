"""Extraction of the arithmetic expression that a question asks to calculate.

The `calculate` tool evaluates the expression.
"""

import re

_NUMBER = r"-?\d+(?:[.,]\d+)*%?"
_OPERATOR = re.compile(r"\d\s*(?:[-+*/^\u00d7\u00f7]|\*\*)\s*\(?\s*-?[\d.]")
_EXPRESSION = re.compile(r"[(\d.][\d\s.,()+\-*/^%\u00d7\u00f7]*[\d)%]")
_WORDED_OPERATIONS = (
    (re.compile(rf"({_NUMBER})\s*(?:%|percent|per cent)\s+of\s+({_NUMBER})", re.I), "{0} / 100 * {1}"),
    (re.compile(rf"square root of\s+({_NUMBER})", re.I), "{0} ** 0.5"),
    (re.compile(rf"({_NUMBER})\s+(?:divided by|over)\s+({_NUMBER})", re.I), "{0} / {1}"),
    (re.compile(rf"({_NUMBER})\s+(?:times|multiplied by)\s+({_NUMBER})", re.I), "{0} * {1}"),
    (re.compile(rf"({_NUMBER})\s+(?:plus|added to)\s+({_NUMBER})", re.I), "{0} + {1}"),
    (re.compile(rf"({_NUMBER})\s+minus\s+({_NUMBER})", re.I), "{0} - {1}"),
)
_REQUEST = re.compile(
    r"\b(?:calculate|compute|what is|what's|how much is|evaluate|result of|sum of|equals?)\b|=\s*\??$", re.I
)
_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d+\.\d+\.\d+\b")


def find_expression(question: str) -> str:
    """Return the expression that a question asks to calculate. Empty means that there is none."""
    text = _DATE.sub(" ", question)
    for pattern, form in _WORDED_OPERATIONS:
        match = pattern.search(text)
        if match:
            return form.format(*(_normalize_number(g) for g in match.groups()))
    run = next((m.group() for m in _EXPRESSION.finditer(text) if _OPERATOR.search(m.group())), "")
    return _clean_expression(run) if run and (_REQUEST.search(text) or not re.search(r"[^\W\d_]", text)) else ""


def _normalize_number(text: str) -> str:
    return text.rstrip("%").replace(",", "")


def _clean_expression(matched: str) -> str:
    text = matched.replace("\u00d7", "*").replace("\u00f7", "/").replace("^", "**")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    while text.count(")") > text.count("(") and text.endswith(")"):
        text = text[:-1]
    return " ".join(text.split())
