"""Explain why a web page has no text of its own: it needs JavaScript, a login, consent to cookies, or is a check.

Only pages with little text are examined, so that a page about such things is not rejected.
"""

import re
from typing import Any

from offing.library.extraction import DocumentRejectedError

MAX_EMPTY_WORDS = 60
"""Maximum number of words of a page that is rejected if it shows a sign of a check, a login or missing JavaScript."""
MAX_WALL_WORDS = 250
"""Maximum number of words of a page that is rejected if it consists of a request for consent."""
MIN_CONSENT_FRACTION = 0.05
"""Minimum fraction of words about consent in such a request."""
MAX_EXAMINED_CHARS = 4_000
MAX_NOTICE_CHARS = 300
"""Number of code points at the beginning of a request for consent that name cookies or consent."""

_SCRIPT = re.compile(
    r"(?:enable|requires?|needs?|without|activat\w+|turn on|aktivieren\w*|activer|habilit\w+|\u542f\u7528|\u6709\u52b9)"
    r"\W.{0,40}?java\s?script|java\s?script.{0,60}?(?:enable|disabled|required|aktivier|deaktiviert|activ|habilit|\u542f\u7528|\u6709\u52b9)",
    re.IGNORECASE | re.DOTALL,
)
_CHECK = re.compile(
    r"just a moment|checking your browser|verif(?:y|ying) (?:that )?you are (?:a )?human|are you a robot|captcha|"
    r"access denied|unusual traffic|request blocked|ddos protection",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"\b(?:log ?in|sign ?in|sign up|subscribe|anmelden|einloggen|connectez-vous|inicia sesi\u00f3n|registrieren)\b"
    r"|\u767b\u5f55|\u30ed\u30b0\u30a4\u30f3",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"cookies?\b|consent|einwillig\w*|zustimm\w*|akzeptier\w*|consentement|datenschutz\w*|privacy|vendors?\b|partners?\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SAVE = "Open the page in a browser and save it there after its text is shown, or add the document in another format."


def check_page(tree: Any, text: str, title: str) -> None:
    """Raise `DocumentRejectedError` with the reason if the text of a page is only a notice in its place."""
    words = len(_WORD.findall(text[: 20 * MAX_WALL_WORDS]))
    if words > MAX_WALL_WORDS:
        return
    head = f"{title}\n{text}"[:MAX_EXAMINED_CHARS]
    if words and len(_CONSENT.findall(text)) >= max(3, MIN_CONSENT_FRACTION * words) and _asks_consent(head):
        raise DocumentRejectedError("The page shows only a request to accept cookies.", f"Accept them first. {_SAVE}")
    if words > MAX_EMPTY_WORDS:
        return
    if _CHECK.search(head):
        raise DocumentRejectedError("The site answered with a check for robots or denied access.", _SAVE)
    if _has_password_field(tree) or (words and _LOGIN.search(title)):
        raise DocumentRejectedError("The page shows only a form to log in.", f"Log in first. {_SAVE}")
    if _SCRIPT.search(f"{head}\n{_read_notices(tree)}") or (not words and next(tree.iter("script"), None) is not None):
        raise DocumentRejectedError("The page has no text without JavaScript, which is not run here.", _SAVE)
    if not words and next(tree.iter("frame", "iframe"), None) is not None:
        raise DocumentRejectedError("The page consists of frames; its text is in other pages.", "Add those pages.")
    if not words:
        raise DocumentRejectedError("The file contains no text.", "Check that the page was saved completely.")


def _asks_consent(head: str) -> bool:
    return re.search("cookie|consent", head[:MAX_NOTICE_CHARS], re.IGNORECASE) is not None


def _has_password_field(tree: Any) -> bool:
    return any((field.get("type") or "").lower() == "password" for field in tree.iter("input"))


def _read_notices(tree: Any) -> str:
    """Return the text that the page shows to browsers without JavaScript."""
    texts, length = list[str](), 0
    for notice in tree.iter("noscript"):
        texts.append("".join(notice.itertext())[:MAX_EXAMINED_CHARS])
        length += len(texts[-1])
        if length > MAX_EXAMINED_CHARS:
            break
    return "\n".join(texts)
