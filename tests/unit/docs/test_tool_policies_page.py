"""The examples of docs/tool-policies.md are executed: its policy, the calls that it decides, its globs and its rule."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from offing.cli.commands import app
from offing.core.tool_policy import DecisionType, ToolCallContext, ToolPolicy, decide, find_issues
from offing.core.tool_policy.conditions import explain_mismatch
from offing.core.tool_policy.parser import parse_tool_policy
from offing.core.tool_policy.restriction import parse_restriction
from offing.core.tool_policy.rules import Condition
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from tests.unit.docs.documents import ROOT, blocks

PAGE = (ROOT / "docs/tool-policies.md").read_text(encoding="utf-8")
SPECS = {tool.spec.name: tool.spec for tool in create_tools(web=True)}
VERDICTS = {"allow": DecisionType.ALLOW, "ask": DecisionType.ASK, "deny": DecisionType.DENY}


def policy_text() -> str:
    """The policy in the request that the page shows."""
    (request,) = blocks(PAGE, "json")
    return json.dumps(json.loads(request)["tool_policy"])


def table(first: str) -> list[list[str]]:
    """The rows of the table whose first heading is `first`, without backticks."""
    _, result, after = PAGE.partition(f"| {first} |")
    assert result, first
    lines = after.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


def call_of(text: str) -> tuple[str, dict[str, Any]]:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    return call.func.id, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}


@pytest.mark.parametrize(("call", "before", "after"), table("call"), ids=lambda cell: cell)
def test_the_policy_of_the_page_decides_each_call_as_the_page_says(call: str, before: str, after: str) -> None:
    policy, (tool, args) = parse_tool_policy(policy_text()), call_of(call)
    verdicts = [
        decide(policy, SPECS[tool], args, ToolCallContext(is_tainted=tainted)).type for tainted in (False, True)
    ]
    assert verdicts == [VERDICTS[before], VERDICTS[after]]


def test_the_policy_of_the_page_passes_the_check_that_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find_issues(parse_tool_policy(policy_text()), SPECS) == ()
    (tmp_path / "policy.json").write_text(policy_text())
    (line,) = [line for line in "".join(blocks(PAGE)).splitlines() if line.startswith("offing tool-policy check")]
    words = [str(tmp_path / word) if word == "policy.json" else word for word in line.split()[1:]]
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert ended.value.code in (0, None)
    assert "0 findings" in capsys.readouterr().out


@pytest.mark.parametrize(("glob", "fits", "fits_not"), table("glob"), ids=lambda cell: cell)
def test_the_globs_of_the_page_match_what_the_page_says(glob: str, fits: str, fits_not: str) -> None:
    condition = Condition(arg="text", glob=glob)
    assert explain_mismatch(condition, fits, grants=True) == ""
    assert explain_mismatch(condition, fits_not, grants=True) != ""


def test_the_rule_of_the_page_narrows_its_policy_and_is_not_proved_under_the_default() -> None:
    (code,) = [block for block in blocks(PAGE, "python") if "ctx.restrict_tools" in block]
    assignment = ast.parse(code.partition("refused")[0]).body[0]
    assert isinstance(assignment, ast.Assign)
    rule = ast.literal_eval(assignment.value)
    assert isinstance(parse_restriction(parse_tool_policy(policy_text()), [rule]), ToolPolicy)
    assert isinstance(parse_restriction(default_tool_policy(web=True), [rule]), str)
