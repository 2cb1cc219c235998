"""Redaction of text that arrives in parts.

Text is released when no secret can span the end of the released part. The released parts together are the redacted
text up to there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from offing.telemetry.redaction import MASK, get_known_secrets, list_secret_spans, redact_with

MAX_HELD_CHARS = 20_000
"""Maximum number of code points that are held back. A longer run of text without a boundary is masked as a whole."""

MAX_SPELLING_GROWTH = 6
"""Maximum length of an escaped spelling of a secret, as a multiple of the length of the secret."""

_BOUNDARY = re.compile(r"[\s\u3000-\U0010ffff]")
"""After such a character, no secret of a known form continues, except as `_OPEN_SECRET` says."""

_OPEN_SECRET = re.compile(
    r"(?:\b(?:api[-_]?key|access_token|client_secret|password|authorization)[\"']?\s*(?:[=:]\s*[\"']?(?:B\w+)?)?"
    r"|\bBearer|-----BEGIN(?:(?!-----END [A-Z ]*-----).)*)\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a secret with spaces inside: a named field, a bearer token or a private key."""


@dataclass(slots=True)
class StreamRedactor:
    """Redactor of one text. It holds back the last word, and all that may belong to a secret."""

    list_secrets: Callable[[], frozenset[str]] = get_known_secrets
    _held: str = field(default="")

    def feed(self, text: str) -> str:
        """Return the redacted text that is released by this part. It may be empty."""
        self._held += text
        secrets = self.list_secrets()
        end = self._find_safe_end(secrets)
        released, self._held = self._held[:end], self._held[end:]
        clean = redact_with(released, secrets) if released else ""
        if len(self._held) <= MAX_HELD_CHARS:
            return clean
        self._held = ""
        return clean + MASK

    def _find_safe_end(self, secrets: frozenset[str]) -> int:
        spaced = max((len(secret) * MAX_SPELLING_GROWTH for secret in secrets if _BOUNDARY.search(secret)), default=1)
        end = self._find_boundary(len(self._held) - spaced + 1)
        if spaced > 1:  # a secret that contains a boundary has arrived completely, if it begins before the end
            end = next((start for start, stop in list_secret_spans(self._held, secrets) if start < end < stop), end)
        if opened := _OPEN_SECRET.search(self._held, 0, end):
            end = self._find_boundary(opened.start())
        return end

    def _find_boundary(self, end: int) -> int:
        """Return the end of the last boundary character before `end`, or 0."""
        for position in range(max(end, 0), 0, -1):
            if _BOUNDARY.match(self._held[position - 1]):
                return position
        return 0
