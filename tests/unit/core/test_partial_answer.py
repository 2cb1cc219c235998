"""A JSON answer is readable while it is written."""

import json
import random
from typing import Any

import pytest

from offing.core.partial_answer import PartialAnswer

REPORT: dict[str, Any] = {
    "title": "The third tower",
    "answer": "Smeaton built it [E1].",
    "sections": [
        {
            "heading": "Builder",
            "sentences": [
                {"text": "Smeaton built it.", "citations": [{"evidence": "E1", "quote": "John Smeaton built"}]},
                {"text": 'He called it "firm" \\ dry. 😀 é', "citations": []},
            ],
        },
        {"heading": "End", "sentences": [{"text": "It cracked.\nIt was replaced.", "citations": []}]},
    ],
}

READABLE = """The third tower
Smeaton built it [E1].
Builder
Smeaton built it. He called it "firm" \\ dry. 😀 é
End
It cracked.
It was replaced."""


def test_a_report_is_shown_without_names_of_fields_citations_and_braces() -> None:
    assert PartialAnswer().feed(json.dumps(REPORT)) == READABLE
    assert PartialAnswer().feed(json.dumps(REPORT, ensure_ascii=False, indent=2)) == READABLE


def test_a_code_fence_around_an_answer_is_not_shown() -> None:
    assert PartialAnswer().feed("```json\n" + json.dumps(REPORT) + "\n```") == READABLE


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_any_size_give_the_same_text(seed: int) -> None:
    draw, answer, text = random.Random(seed), PartialAnswer(), "\n" + json.dumps(REPORT, indent=seed % 3 or None)
    readable, position = "", 0
    while position < len(text):
        size = draw.randint(1, 12)
        readable += answer.feed(text[position : position + size])
        position += size
        assert READABLE.startswith(readable)
    assert readable == READABLE


def test_a_plan_is_shown_without_the_name_of_its_tool_and_its_arguments() -> None:
    plan = '{"justification": "start", "sub_goal": "find the builder", "tool": "search", "args": {"q": "x"}, "su'
    assert PartialAnswer().feed(plan) == "start\nfind the builder"


def test_an_incomplete_escape_is_held_back() -> None:
    assert PartialAnswer().feed('{"analysis": "a\\') == "a"
    assert PartialAnswer().feed('{"analysis": "a\\ud83d\\ude') == "a"
    assert PartialAnswer().feed('{"analysis": "a\\ud83d\\ude00') == "a😀"


@pytest.mark.parametrize("text", ["Plain prose.", "<plan>\nnext", "# A report\nIt says [1].", "`code` first"])
def test_an_answer_that_is_not_json_is_shown_unchanged(text: str) -> None:
    assert "".join(map(PartialAnswer().feed, ["", text])) == text
    answer = PartialAnswer()
    assert "".join(answer.feed(char) for char in text) == text


@pytest.mark.parametrize(
    "text", ['{"a": [}]}"', '"only a text"', "{{{{", '{"a": "\\uZZZZ x"}', "]]", '{"a" "b": 1, "c']
)
def test_malformed_answers_never_raise(text: str) -> None:
    PartialAnswer().feed(text)
