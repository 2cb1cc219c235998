"""Routes for tool policies: keep them under a name, check one, and decide sample calls."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.tool_policies import (
    NamedToolPolicyIn,
    NamedToolPolicyOut,
    ToolPolicyCheckIn,
    ToolPolicyCheckOut,
    serialize_named_policy,
    serialize_policy_check,
)
from offing.api.strict_route import StrictRoute
from offing.services import graphs, tool_policies
from offing.services.tool_policies import SampleCall

router = APIRouter(prefix="/tool-policies", tags=["tool policies"], route_class=StrictRoute)

Name = Annotated[str, Path(max_length=64, description="Name of the tool policy.")]

NOT_FOUND = describe_problems(_404="There is no such tool policy.")


@router.get("")
async def list_tool_policies(caller: CurrentCaller, deps: Deps) -> list[NamedToolPolicyOut]:
    """List your tenant's tool policies by name, at most 100. Send `policy` as `tool_policy` of a run to use one."""
    return [serialize_named_policy(row) for row in await tool_policies.list_policies(deps.database, caller.tenant_id)]


@router.post("/check", responses=BODY_TOO_LARGE)
async def check_tool_policy(caller: CurrentCaller, deps: Deps, body: ToolPolicyCheckIn) -> ToolPolicyCheckOut:
    """Check a tool policy as `offing tool-policy check` does, and decide sample calls. Nothing is stored or called."""
    graph = graphs.get_graph(deps.graphs, body.graph)
    calls = [SampleCall(call.tool, call.args) for call in body.calls]
    result = await asyncio.to_thread(
        tool_policies.check_tool_policy, body.text, graph, body.scope.model_dump(), deps.mcp_servers, calls
    )
    return serialize_policy_check(result)


@router.get("/{name}", responses=NOT_FOUND)
async def get_tool_policy(caller: CurrentCaller, deps: Deps, name: Name) -> NamedToolPolicyOut:
    """Get a tool policy."""
    return serialize_named_policy(await tool_policies.get_policy(deps.database, caller.tenant_id, name))


@router.put("/{name}", responses=BODY_TOO_LARGE | describe_problems(_409="There are too many tool policies."))
async def put_tool_policy(caller: CurrentCaller, deps: Deps, name: Name, body: NamedToolPolicyIn) -> NamedToolPolicyOut:
    """Create or replace a tool policy. Runs that were submitted with an earlier version keep it."""
    return serialize_named_policy(await tool_policies.put_policy(deps.database, caller.tenant_id, name, body.policy))


@router.delete("/{name}", status_code=204, responses=NOT_FOUND)
async def delete_tool_policy(caller: CurrentCaller, deps: Deps, name: Name) -> Response:
    """Delete a tool policy. Runs that were submitted with it keep it."""
    await tool_policies.delete_policy(deps.database, caller.tenant_id, name)
    return Response(status_code=204)
