"""The keywords of `rehearse`, as types: the fields of a scene but for its question."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from offing.core.policy import Policy
from offing.core.question import Answer
from offing.core.run import Budget
from offing.sdk.tool import OwnTool
from offing.testing.scene import Answering


class Given(TypedDict, total=False):
    documents: Mapping[str, str]
    answers: Mapping[str, Answering]
    rules: Mapping[str, str]
    forms: Mapping[str, str]
    budget: Budget
    takes: Mapping[str, float]
    people: Mapping[int, str]
    write_after: int | None
    tools: Sequence[OwnTool]
    policy: Policy | None
    approves: bool
    replies: Mapping[str, Answer]
    earlier: tuple[tuple[str, str], ...]
    seed: int
    failing_tools: Mapping[str, str]
    items: Sequence[tuple[tuple[str, ...], str, Mapping[str, Any]]]
