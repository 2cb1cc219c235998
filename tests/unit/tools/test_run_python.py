"""The tool that runs code is there, and allowed, for a run that was asked with code alone."""

from typing import Any

import pytest

from offing.core.tool_policy import decide
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from offing.tools.run_python import RunPython


def test_the_tool_is_known_only_with_code_and_never_in_a_world() -> None:
    assert "run_python" in {tool.spec.name for tool in create_tools(code=True)}
    assert "run_python" not in {tool.spec.name for tool in (*create_tools(web=True), *create_tools("world", code=True))}


@pytest.mark.parametrize(
    ("args", "allowed"),
    [
        ({"code": "print(1)"}, True),
        ({"code": "x" * 20_000, "files": ["a"] * 8}, True),
        ({"code": ""}, False),
        ({"code": "x" * 20_001}, False),
        ({"code": "1", "files": ["a"] * 9}, False),
        ({"files": []}, False),
        ({"code": "1", "network": True}, False),
    ],
)
def test_the_default_policy_bounds_what_may_be_run(args: dict[str, Any], allowed: bool) -> None:
    assert decide(default_tool_policy(code=True), RunPython.spec, args).is_allowed is allowed
    assert not decide(default_tool_policy(web=True), RunPython.spec, args).is_allowed
