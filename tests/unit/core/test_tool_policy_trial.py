"""A sample call is decided as a run decides it."""

from pydantic import BaseModel, ConfigDict

from offing.core.tool import ToolSpec
from offing.core.tool_policy import ToolPolicy
from offing.core.tool_policy.parser import read_tool_policy
from offing.core.tool_policy.trial import TrialOutcome, try_call


class Args(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    limit: int = 5


SPECS = {name: ToolSpec(name, "", Args, "calls") for name in ("say", "shout")}


def outcome(policy: str, tool: str, *, is_tainted: bool = False, **args: object) -> TrialOutcome:
    parsed = read_tool_policy(policy)
    assert isinstance(parsed, ToolPolicy)
    return try_call(parsed, SPECS, tool, args, is_tainted=is_tainted)


ALLOW = '{"rules": [{"tool": "say", "allow_other_args": true}]}'


def test_a_call_is_allowed_by_the_rule_that_names_its_tool() -> None:
    assert outcome(ALLOW, "say", text="hi") == TrialOutcome("allow", "allow say #1", "")
    assert outcome(ALLOW, "shout", text="hi").outcome == "deny"


def test_a_call_that_no_tool_takes_is_not_valid() -> None:
    assert outcome(ALLOW, "whisper").outcome == "invalid"
    assert "text" in outcome(ALLOW, "say").reason
    assert outcome(ALLOW, "say", text="hi", volume=3).outcome == "invalid"


def test_defaults_of_arguments_count_as_in_a_run() -> None:
    narrow = '{"rules": [{"tool": "say", "when": [{"arg": "text"}, {"arg": "limit", "maximum": 3}]}]}'
    assert outcome(narrow, "say", text="hi").outcome == "deny"
    assert outcome(narrow, "say", text="hi", limit=2).outcome == "allow"


def test_a_replacement_is_decided_as_well() -> None:
    rules = """{"rules": [
        {"tool": "shout", "effect": "replace",
         "substitute": {"tool": "say", "args": [{"arg": "text", "from_arg": "text"}]}},
        {"tool": "say", "when": [{"arg": "text", "one_of": ["hi"]}], "allow_other_args": true}]}"""
    replaced = outcome(rules, "shout", text="hi")
    assert (replaced.outcome, replaced.then and replaced.then.outcome) == ("replace", "allow")
    other = outcome(rules, "shout", text="secret")
    assert other.then is not None
    assert other.then.outcome == "deny"


def test_a_rule_for_after_untrusted_text_applies_only_then() -> None:
    rules = """{"rules": [{"tool": "say", "allow_other_args": true},
        {"tool": "say", "effect": "ask", "allow_other_args": true, "when_tainted": true}]}"""
    assert [outcome(rules, "say", is_tainted=tainted, text="hi").outcome for tainted in (False, True)] == [
        "allow",
        "ask",
    ]


def test_a_tool_of_the_graph_without_a_rule_is_allowed() -> None:
    assert outcome(ALLOW, "graph:send").outcome == "allow"
    forbidden = '{"rules": [{"tool": "graph:send", "effect": "forbid"}]}'
    assert outcome(forbidden, "graph:send", to="Ada").outcome == "deny"


def test_every_wrong_field_is_reported_and_not_only_the_first() -> None:
    issues = read_tool_policy('{"rules": [{"tool": ""}, {"tool": "say", "effect": "maybe"}], "more": 1}')
    assert not isinstance(issues, ToolPolicy)
    assert [issue.field for issue in issues] == ["rules.0.tool", "rules.1.effect", "more"]
