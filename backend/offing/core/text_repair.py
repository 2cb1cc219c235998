"""Repairs of a model's text that need no second call: what is around the answer is removed, and nothing is guessed.

A repair changes only the form of an answer. It is named in the record of the role call, together
with the text as the model wrote it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

CODE_FENCE, THOUGHTS, PROSE_AROUND = "code_fence", "thoughts", "prose_around"

_FENCED = re.compile(
    r"\A[^\n`]{0,300}\n?\s*(`{3,}|~{3,})[\w+-]{0,20}[ \t]*\n(.*)\n[ \t]*\1[^\n`]{0,300}\s*\Z", re.DOTALL
)
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_THOUGHTS_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RepairedText:
    """A text with the names of the repairs that made it, in their order."""

    text: str
    repairs: tuple[str, ...] = ()

    def then(self, name: str, repair: Callable[[str], str]) -> "RepairedText":
        """Apply a repair. Its name is added if it changes the text."""
        text = repair(self.text)
        return self if text == self.text else RepairedText(text, (*self.repairs, name))


def remove_thoughts(text: str) -> str:
    """Remove a model's thoughts before its answer, also if the tag that opens them is missing."""
    if match := _THOUGHTS.match(text):
        return text[match.end() :].lstrip()
    if "<think" not in text.lower() and (match := _THOUGHTS_END.match(text)):
        return text[match.end() :].lstrip()
    return text


def remove_code_fence(text: str) -> str:
    """Remove the code fence around a whole answer, with at most one line of prose before and after it.

    A text with several fences stays unchanged, because they may belong to the answer.
    """
    match = _FENCED.match(text)
    if match is None or len(_FENCE_LINE.findall(text)) > 2:
        return text
    return match.group(2).strip()
