"""What a model thinks before it answers: separated from the answer, and recognized when it took its room."""

import re
from dataclasses import dataclass

from offing.core.model import InvalidOutput, Usage

OPEN_TAG, CLOSE_TAG = "<think>", "</think>"
_CLOSING_LINE = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ThinkingOverflow(InvalidOutput):
    """An answer that is missing or incomplete, because thinking took the completion tokens."""


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking in a text, and the rest of it.

    Some servers leave the tags of a model in its answer, and some templates put the opening tag into the
    prompt. Without tags, the whole text is the answer.
    """
    start = text.lstrip()
    if start.startswith(OPEN_TAG):
        thinking, _, answer = start.removeprefix(OPEN_TAG).partition(CLOSE_TAG)
        return thinking, answer.lstrip()
    if OPEN_TAG not in text and (closing := _CLOSING_LINE.search(text)):
        return text[: closing.start()], text[closing.end() :].lstrip()
    return "", text


def took_the_room(answer: str, thinking_tokens: int, room_tokens: int, usage: Usage) -> bool:
    """Return whether thinking is why an answer was cut off.

    `thinking_tokens` are those that were counted or estimated, and `room_tokens` those that were meant for
    thinking. Tokens that are neither in an empty answer nor counted were thought, too.
    """
    if not answer.strip():
        return thinking_tokens > 0 or usage.completion_tokens > 0
    return thinking_tokens > room_tokens


def describe_overflow(limit_tokens: int, thinking_tokens: int) -> ThinkingOverflow:
    """Describe an attempt in which thinking left too little room for the answer."""
    counted = f", {thinking_tokens} of them for thinking" if thinking_tokens else ""
    return ThinkingOverflow(
        f"Thinking used up the room: the {limit_tokens} completion tokens{counted} ended before the answer did."
    )
