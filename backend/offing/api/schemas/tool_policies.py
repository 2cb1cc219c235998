"""API schemas of tool policies that a tenant keeps, and of checking one."""

from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from offing.api.schemas.base import ApiModel
from offing.core.tool import SideEffect, ToolSpec
from offing.core.tool_policy import ToolPolicy
from offing.core.tool_policy.trial import TrialOutcome
from offing.services.tool_policies import MAX_POLICY_CHARS, SampleDecision, ToolPolicyCheck
from offing.storage.named_tool_policies import NamedToolPolicy

Outcome = Literal["allow", "ask", "deny", "replace", "invalid"]


class NamedToolPolicyIn(ApiModel):
    """A tool policy to keep. It is checked for a graph and a scope when a run is submitted with it."""

    policy: ToolPolicy


class NamedToolPolicyOut(ApiModel):
    name: str
    policy: dict[str, Any] | None = Field(
        description="The policy without default values, as `POST /runs` takes it. null: this version cannot read it."
    )
    updated_at: datetime


class ToolPolicyScopeIn(ApiModel):
    """What the run may use."""

    web: bool = False
    code: bool = False
    mcp: list[Annotated[str, Field(max_length=64)]] = Field(default=[], max_length=20)


class SampleCallIn(ApiModel):
    tool: str = Field(min_length=1, max_length=200)
    args: dict[str, Any] = Field(default={}, max_length=100)


class ToolPolicyCheckIn(ApiModel):
    """A tool policy to check, and sample calls to decide."""

    text: str | None = Field(
        default=None, max_length=MAX_POLICY_CHARS, description="JSON text of the tool policy. null: the default policy."
    )
    graph: str = Field(default="agentflow", max_length=100)
    scope: ToolPolicyScopeIn = ToolPolicyScopeIn()
    calls: list[SampleCallIn] = Field(default=[], max_length=50)


class ToolPolicyIssueOut(ApiModel):
    rule: str = Field(description="Name of the rule. Empty: the form of the text is wrong.")
    field: str = Field(description="Path of the field, such as rules.2.when.0.arg, counted from 0.")
    problem: str
    remedy: str


class OutcomeOut(ApiModel):
    """What would happen to a call at the start of a run."""

    outcome: Outcome
    rule: str = Field(description="The rule that decides. Empty: no rule does.")
    reason: str
    replacement: SampleCallIn | None = Field(description="The call that is made instead. null: none.")
    replacement_outcome: Outcome | None = Field(description="What happens to it.")
    replacement_reason: str


class SampleDecisionOut(ApiModel):
    tool: str
    args: dict[str, Any]
    before: OutcomeOut = Field(description="Before the run has read untrusted text.")
    after: OutcomeOut = Field(description="After the run has read untrusted text.")


class PolicyToolOut(ApiModel):
    """A tool that the run would have."""

    name: str
    description: str
    arguments: dict[str, Any] = Field(description="JSON schema of the arguments.")
    sends_data_out: bool
    changes_something: bool = Field(description="Whether a call has an effect outside the run.")


class ToolPolicyCheckOut(ApiModel):
    policy: dict[str, Any] | None = Field(description="The policy without default values. null: it cannot be read.")
    issues: list[ToolPolicyIssueOut] = Field(description="Empty: a run can be submitted with it.")
    tools: list[PolicyToolOut]
    decisions: list[SampleDecisionOut]


def serialize_named_policy(row: NamedToolPolicy) -> NamedToolPolicyOut:
    policy = None if row.policy is None else row.policy.to_json()
    return NamedToolPolicyOut(name=row.name, policy=policy, updated_at=row.updated_at)


def serialize_policy_check(check: ToolPolicyCheck) -> ToolPolicyCheckOut:
    issues = [
        ToolPolicyIssueOut(rule=one.rule, field=one.field, problem=one.problem, remedy=one.remedy)
        for one in check.issues
    ]
    return ToolPolicyCheckOut(
        policy=None if check.policy is None else check.policy.to_json(),
        issues=issues,
        tools=[_serialize_spec(spec) for _, spec in sorted(check.specs.items())],
        decisions=[_serialize_decision(one) for one in check.decisions],
    )


def _serialize_spec(spec: ToolSpec) -> PolicyToolOut:
    return PolicyToolOut(
        name=spec.name,
        description=spec.description,
        arguments=spec.args.model_json_schema(),
        sends_data_out=spec.sends_data_out,
        changes_something=spec.side_effect is not SideEffect.PURE,
    )


def _serialize_decision(decision: SampleDecision) -> SampleDecisionOut:
    return SampleDecisionOut(
        tool=decision.call.tool,
        args=dict(decision.call.args),
        before=_serialize_outcome(decision.before),
        after=_serialize_outcome(decision.after),
    )


def _serialize_outcome(outcome: TrialOutcome) -> OutcomeOut:
    instead, then = outcome.replacement, outcome.then
    return OutcomeOut(
        outcome=cast(Outcome, outcome.outcome),
        rule=outcome.rule,
        reason=outcome.reason,
        replacement=None if instead is None else SampleCallIn(tool=instead.tool, args=instead.args),
        replacement_outcome=None if then is None else cast(Outcome, then.outcome),
        replacement_reason="" if then is None else then.reason,
    )
