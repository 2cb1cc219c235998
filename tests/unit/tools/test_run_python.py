"""The tool that runs code is there, and allowed, for a run that was asked with code alone."""

from typing import Any

import pytest

from offing.core.policy import decide, default_policy
from offing.tools import registry
from offing.tools.run_python import RunPython


def test_the_tool_is_known_only_with_code_and_never_in_a_world() -> None:
    assert "run_python" in {tool.spec.name for tool in registry(code=True)}
    assert "run_python" not in {tool.spec.name for tool in (*registry(web=True), *registry("world", code=True))}


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
    assert decide(default_policy(code=True), RunPython.spec, args).allowed is allowed
    assert not decide(default_policy(web=True), RunPython.spec, args).allowed
