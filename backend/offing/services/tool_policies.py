"""Tool policies before a run has them: keep them under a name, check them, and decide sample calls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.errors import Conflict, InvalidInput
from offing.core.tool import ToolSpec
from offing.core.tool_policy import ToolPolicy, ToolPolicyIssue, find_issues
from offing.core.tool_policy.parser import read_tool_policy
from offing.core.tool_policy.trial import TrialOutcome, try_call
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services.run_tool_policy import build_tool_policy, list_tool_specs
from offing.storage import named_tool_policies
from offing.storage.named_tool_policies import MAX_POLICIES, NamedToolPolicy
from offing.storage.pool import Database

MAX_POLICY_CHARS = 200_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class SampleCall:
    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SampleDecision:
    """What would happen to a sample call."""

    call: SampleCall
    before: TrialOutcome
    """Before the run has read untrusted text."""
    after: TrialOutcome
    """After that."""


@dataclass(frozen=True, slots=True)
class ToolPolicyCheck:
    """The findings about a tool policy, and its decisions."""

    issues: tuple[ToolPolicyIssue, ...]
    """Empty if a run can be submitted with it."""
    policy: ToolPolicy | None
    """`None` if the text cannot be read as a tool policy."""
    specs: Mapping[str, ToolSpec]
    """The tools that the run would have, by name."""
    decisions: tuple[SampleDecision, ...] = field(default=())
    """Empty if the text cannot be read as a tool policy."""


def check_tool_policy(
    text: str | None,
    graph: Graph,
    scope: Mapping[str, Any],
    servers: McpServerRegistry,
    calls: Sequence[SampleCall] = (),
) -> ToolPolicyCheck:
    """Check the JSON text of a tool policy for a run of this graph and scope, and decide the sample calls.

    If `text` is `None`, the policy is the default one. Raises InvalidInput for a scope that no run can have.
    """
    specs = list_tool_specs(graph, scope, servers)
    parsed = build_tool_policy(graph, scope, None, servers) if text is None else read_tool_policy(text)
    if not isinstance(parsed, ToolPolicy):
        return ToolPolicyCheck(parsed, None, specs)
    issues = () if text is None else _find_issues(parsed, graph, scope, servers, specs)
    return ToolPolicyCheck(issues, parsed, specs, tuple(_decide(parsed, specs, call) for call in calls))


def _find_issues(
    policy: ToolPolicy,
    graph: Graph,
    scope: Mapping[str, Any],
    servers: McpServerRegistry,
    specs: Mapping[str, ToolSpec],
) -> tuple[ToolPolicyIssue, ...]:
    """Return the issues of a policy, including that it allows more calls of a server than the operator does."""
    if issues := find_issues(policy, specs):
        return issues
    try:
        build_tool_policy(graph, scope, policy, servers)
    except InvalidInput as error:
        return (ToolPolicyIssue("", error.field, error.problem, error.remedy),)
    return ()


def _decide(policy: ToolPolicy, specs: Mapping[str, ToolSpec], call: SampleCall) -> SampleDecision:
    before, after = (try_call(policy, specs, call.tool, call.args, is_tainted=tainted) for tainted in (False, True))
    return SampleDecision(call, before, after)


async def list_policies(database: Database, tenant_id: UUID) -> Sequence[NamedToolPolicy]:
    """Return the tenant's tool policies by name, at most `MAX_POLICIES`."""
    async with database.transaction(tenant_id) as connection:
        return await named_tool_policies.list_policies(connection)


async def get_policy(database: Database, tenant_id: UUID, name: str) -> NamedToolPolicy:
    """Return a tool policy. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await named_tool_policies.get_policy(connection, name)


async def put_policy(database: Database, tenant_id: UUID, name: str, policy: ToolPolicy) -> NamedToolPolicy:
    """Create or replace a tool policy. A run checks it when it is submitted with it. Raises InvalidInput, Conflict."""
    if not _NAME.fullmatch(name):
        remedy = "Use 1 to 64 lower-case letters, digits, periods, hyphens and underscores."
        raise InvalidInput("name", f"{name[:80]!r} cannot be the name of a tool policy", remedy)
    async with database.transaction(tenant_id) as connection:
        if await named_tool_policies.count_others(connection, name) >= MAX_POLICIES:
            raise Conflict(f"There are {MAX_POLICIES} tool policies.", "Delete one that is not used.")
        return await named_tool_policies.upsert_policy(connection, tenant_id, name, policy)


async def delete_policy(database: Database, tenant_id: UUID, name: str) -> None:
    """Delete a tool policy. Runs that were submitted with it keep their copy. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await named_tool_policies.delete_policy(connection, name)
