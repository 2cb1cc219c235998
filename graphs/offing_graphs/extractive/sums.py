"""Finding the sum that a question asks for, as an expression for the `calculate` tool. It calculates nothing itself."""

import re

_NUMBER = r"-?\d+(?:[.,]\d+)*%?"
_OPERATOR = re.compile(r"\d\s*(?:[-+*/^\u00d7\u00f7]|\*\*)\s*\(?\s*-?[\d.]")
_RUN = re.compile(r"[(\d.][\d\s.,()+\-*/^%\u00d7\u00f7]*[\d)%]")
_WORDS = (
    (re.compile(rf"({_NUMBER})\s*(?:%|percent|per cent)\s+of\s+({_NUMBER})", re.I), "{0} / 100 * {1}"),
    (re.compile(rf"square root of\s+({_NUMBER})", re.I), "{0} ** 0.5"),
    (re.compile(rf"({_NUMBER})\s+(?:divided by|over)\s+({_NUMBER})", re.I), "{0} / {1}"),
    (re.compile(rf"({_NUMBER})\s+(?:times|multiplied by)\s+({_NUMBER})", re.I), "{0} * {1}"),
    (re.compile(rf"({_NUMBER})\s+(?:plus|added to)\s+({_NUMBER})", re.I), "{0} + {1}"),
    (re.compile(rf"({_NUMBER})\s+minus\s+({_NUMBER})", re.I), "{0} - {1}"),
)
_ASKED = re.compile(
    r"\b(?:calculate|compute|what is|what's|how much is|evaluate|result of|sum of|equals?)\b|=\s*\??$", re.I
)
_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d+\.\d+\.\d+\b")


def expression(question: str) -> str:
    """The expression that a question asks to be calculated. Empty: it asks for none."""
    text = _DATE.sub(" ", question)
    for pattern, form in _WORDS:
        match = pattern.search(text)
        if match:
            return form.format(*(_number(g) for g in match.groups()))
    run = next((m.group() for m in _RUN.finditer(text) if _OPERATOR.search(m.group())), "")
    return _clean(run) if run and (_ASKED.search(text) or not re.search(r"[^\W\d_]", text)) else ""


def _number(text: str) -> str:
    return text.rstrip("%").replace(",", "")


def _clean(run: str) -> str:
    text = run.replace("\u00d7", "*").replace("\u00f7", "/").replace("^", "**")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    while text.count(")") > text.count("(") and text.endswith(")"):
        text = text[:-1]
    return " ".join(text.split())
