"""The readable text of a model's answer while it is written.

A JSON answer is shown as the text values that have arrived, without braces, names of fields and values that only
programs read. Any other answer is shown unchanged. The readable text only grows, so that it can be sent in parts.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

HIDDEN_FIELDS = frozenset(
    {"tool", "evidence", "evidence_id", "source", "source_id", "passage", "quote", "quotes", "citations", "id", "ids",
     "kind", "action", "url", "args", "arguments", "status"}
)  # fmt: skip
"""Names of fields whose text values, and those nested in them, are left out."""

SENTENCE_FIELD = "text"
"""Name of fields whose consecutive values are sentences of one paragraph."""

_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}
_PLAIN_RUN = re.compile(r'[^"\\]+')
_JSON_START = re.compile(r"\s*(?:```(?:json)?\s*)?[{\[]")
_MAYBE_JSON_START = re.compile(r"\s*(?:`{0,3}|```(?:j|js|jso|json)?\s*)\Z")


class _Place(Enum):
    NAME = auto()
    """A text here is the name of a field."""
    VALUE = auto()


@dataclass(slots=True)
class _Level:
    """An object or array that is open."""

    is_object: bool
    is_hidden: bool
    place: _Place
    name: str = ""
    """Name of the current field. An array has the name of its own field."""


@dataclass(slots=True)
class PartialAnswer:
    """Reader of one answer that arrives in parts."""

    _undecided: str = ""
    """Text from which JSON cannot be told from prose yet."""
    _is_json: bool | None = None
    _levels: list[_Level] = field(default_factory=list[_Level])
    _in_text: bool = False
    _escape: str = ""
    """Escape sequence that has begun, with its backslash."""
    _high_surrogate: str = ""
    _name: str = ""
    _previous_field: str = ""
    """Field of the last text that was shown. Empty means that nothing was shown yet."""
    _shows_current: bool = False

    def feed(self, text: str) -> str:
        """Return the readable text that this part adds. It may be empty."""
        if self._is_json is None:
            text, self._undecided = self._undecided + text, ""
            if _JSON_START.match(text):
                self._is_json = True
            elif _MAYBE_JSON_START.match(text):
                self._undecided = text
                return ""
            else:
                self._is_json = False
        return self._read_json(text) if self._is_json else text

    def _read_json(self, text: str) -> str:
        readable: list[str] = []
        position = 0
        while position < len(text):
            if self._in_text and not self._escape and (run := _PLAIN_RUN.match(text, position)):
                readable.append(self._take(run.group()))
                position = run.end()
                continue
            readable.append(self._read_char(text[position]))
            position += 1
        return "".join(readable)

    def _read_char(self, char: str) -> str:
        if self._escape:
            return self._read_escape(char)
        if self._in_text:
            if char == "\\":
                self._escape = char
            else:
                self._end_text()
            return ""
        if char == '"':
            return self._begin_text()
        self._read_structure(char)
        return ""

    def _read_structure(self, char: str) -> None:
        level = self._levels[-1] if self._levels else None
        if char in "{[":
            is_hidden = level is not None and (level.is_hidden or level.name in HIDDEN_FIELDS)
            place = _Place.NAME if char == "{" else _Place.VALUE
            self._levels.append(_Level(char == "{", is_hidden, place, level.name if level and char == "[" else ""))
        elif char in "}]":
            del self._levels[-1:]
        elif level is not None and level.is_object and char in ":,":
            level.place = _Place.VALUE if char == ":" else _Place.NAME

    def _begin_text(self) -> str:
        self._in_text, self._name = True, ""
        level = self._levels[-1] if self._levels else None
        self._shows_current = (
            level is not None
            and level.place is _Place.VALUE
            and not level.is_hidden
            and level.name not in HIDDEN_FIELDS
        )
        if not self._shows_current or level is None:
            return ""
        before, self._previous_field = self._previous_field, level.name or "."
        if not before:
            return ""
        return " " if before == level.name == SENTENCE_FIELD else "\n"

    def _end_text(self) -> None:
        self._in_text, self._high_surrogate = False, ""
        if self._levels and self._levels[-1].is_object and self._levels[-1].place is _Place.NAME:
            self._levels[-1].name = self._name

    def _read_escape(self, char: str) -> str:
        self._escape += char
        if self._escape[1] != "u":
            escape, self._escape = self._escape, ""
            return self._take(_SIMPLE_ESCAPES.get(escape[1], escape[1]))
        if len(self._escape) < 6:
            return ""
        digits, self._escape = self._escape[2:], ""
        try:
            return self._take(self._join_surrogates(chr(int(digits, 16))))
        except ValueError:
            return ""

    def _join_surrogates(self, char: str) -> str:
        """Return the character, or nothing while the second half of a surrogate pair is missing."""
        high, self._high_surrogate = self._high_surrogate, ""
        if "\ud800" <= char <= "\udbff":
            self._high_surrogate = char
            return ""
        if "\udc00" <= char <= "\udfff":
            pair = (high + char).encode("utf-16", "surrogatepass") if high else b""
            return pair.decode("utf-16") if pair else ""
        return char

    def _take(self, text: str) -> str:
        if self._shows_current:
            return text
        self._name = (self._name + text)[:100]
        return ""
