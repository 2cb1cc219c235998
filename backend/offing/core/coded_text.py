"""English texts as codes with parameters, so that a client can say them in the reader's language.

A catalog has a template for each code. It finds the code of a text by its template, so that stored texts of any age
have one, and what people, models and other authors' code write has none and is left unchanged.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

MAX_CODED_CHARS = 20_000
"""Longer texts are not compared with templates: the platform writes none."""

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class CodedText:
    """What an English text says."""

    code: str
    parameters: Mapping[str, str]
    """What the text names, by the names in its template. Empty means nothing."""


@dataclass(frozen=True)
class TextCatalog:
    """Templates by their codes. `{name}` in a template stands for a parameter, which is never empty."""

    templates: Mapping[str, str]

    def render(self, code: str, **parameters: object) -> str:
        """Return the text of a code. Raises KeyError for an unknown code or a missing parameter."""
        return self.templates[code].format(**parameters)

    def find(self, text: str) -> CodedText | None:
        """Return what a text says. `None` means that it fits no template."""
        if len(text) > MAX_CODED_CHARS:
            return None
        for code, pattern in self._patterns:
            if match := pattern.fullmatch(text):
                return CodedText(code, match.groupdict())
        return None

    def find_fields(self, **texts: str | None) -> dict[str, CodedText]:
        """Return what the texts of several fields say, without those that fit no template."""
        matches = ((name, self.find(text)) for name, text in texts.items() if text)
        return {name: coded for name, coded in matches if coded is not None}

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """The templates as patterns: those with the most fixed text first, because they say the most."""
        by_fixed_text = sorted(self.templates.items(), key=lambda item: -len(_PARAMETER.sub("", item[1])))
        return tuple((code, _compile(template)) for code, template in by_fixed_text)


def list_parameters(template: str) -> list[str]:
    """Return the names of the parameters of a template, in their order."""
    return _PARAMETER.findall(template)


def _compile(template: str) -> re.Pattern[str]:
    parts = _PARAMETER.split(template)
    pattern = "".join(f"(?P<{part}>.+?)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile(pattern, re.DOTALL)
