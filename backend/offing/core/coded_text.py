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
        for template in self._parsed:
            if (values := template.match(text)) is not None:
                return CodedText(template.code, dict(zip(template.parameters, values, strict=True)))
        return None

    def find_fields(self, **texts: str | None) -> dict[str, CodedText]:
        """Return what the texts of several fields say, without those that fit no template."""
        matches = ((name, self.find(text)) for name, text in texts.items() if text)
        return {name: coded for name, coded in matches if coded is not None}

    @cached_property
    def _parsed(self) -> tuple["_Template", ...]:
        """The templates: those with the most fixed text first, because they say the most."""
        parsed = (_parse(code, template) for code, template in self.templates.items())
        return tuple(sorted(parsed, key=lambda one: -sum(map(len, one.fixed))))


@dataclass(frozen=True, slots=True)
class _Template:
    """The parts of a template."""

    code: str
    fixed: tuple[str, ...]
    """The texts before, between and after the parameters."""
    parameters: tuple[str, ...]

    def match(self, text: str) -> list[str] | None:
        """Return the values of the parameters, each as short as possible. `None` means that the text does not fit.

        The time is proportional to the length of the text, whatever it contains.
        """
        first, *between = self.fixed
        if not between:
            return [] if text == first else None
        if not text.startswith(first):
            return None
        values, start = list[str](), len(first)
        for part in between[:-1]:
            if (end := text.find(part, start + 1)) < 0:
                return None
            values.append(text[start:end])
            start = end + len(part)
        end = len(text) - len(between[-1])
        return [*values, text[start:end]] if end > start and text.endswith(between[-1]) else None


def list_parameters(template: str) -> list[str]:
    """Return the names of the parameters of a template, in their order."""
    return _PARAMETER.findall(template)


def _parse(code: str, template: str) -> _Template:
    parts = _PARAMETER.split(template)
    return _Template(code, tuple(parts[::2]), tuple(parts[1::2]))
