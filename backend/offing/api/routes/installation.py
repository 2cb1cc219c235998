"""Routes for the installation: health, stored data, search engines, MCP servers and spending."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from offing import environment
from offing.api.auth import CurrentCaller, CurrentOperator
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.installation import (
    InstallationHealthOut,
    McpListingOut,
    McpPinIn,
    McpServerAddIn,
    McpServerIn,
    McpSetupOut,
    SearchSetupOut,
    SearchTestIn,
    SearchTestOut,
    SpendingOut,
    StoredDataOut,
    serialize_check,
    serialize_listing,
    serialize_mcp_setup,
    serialize_retention,
    serialize_search_setup,
    serialize_size,
    serialize_spending,
    serialize_test_search,
    serialize_worker,
)
from offing.api.strict_route import StrictRoute
from offing.services import health, mcp_settings, search_engines, spending, stored_data
from offing.services.mcp_settings import NewServer
from offing.storage.spending import MAX_DAYS

router = APIRouter(tags=["installation"], route_class=StrictRoute)

EngineName = Annotated[str, Path(max_length=64, description="Name of the search engine.")]
ServerName = Annotated[str, Path(max_length=64, description="Name of the MCP server.")]

SERVER_NOT_FOUND = describe_problems(_404="There is no such MCP server.")
SERVER_CONFLICT = describe_problems(
    _409="The tools of the server are not those that were reviewed, or the API cannot write the operator's files."
)


@router.get("/installation/health")
async def get_installation_health(caller: CurrentCaller, deps: Deps) -> InstallationHealthOut:
    """Check the running installation, as `offing doctor` does. Each failed check says what to do."""
    state = await health.get_health(deps.database, deps.settings, caller.tenant_id, deps.bus.is_reachable)
    sandbox = [deps.sandbox_check.get_result()] if health.sees_installation(caller.tenant_id) else []
    checks = [*state.checks, *sandbox]
    return InstallationHealthOut(
        ok=all(check.ok for check in checks),
        checks=[serialize_check(check) for check in checks],
        workers=[serialize_worker(row) for row in state.workers],
    )


@router.get("/installation/stored-data")
async def get_stored_data(caller: CurrentCaller, deps: Deps) -> StoredDataOut:
    """Get what is kept for how long, by which setting, and how much space it takes."""
    rules = [serialize_retention(rule) for rule in stored_data.list_retention_rules(deps.settings)]
    if not health.sees_installation(caller.tenant_id):
        return StoredDataOut(retention=rules, database_bytes=None, kinds=[])
    total, kinds = await stored_data.measure_database(deps.database)
    return StoredDataOut(retention=rules, database_bytes=total, kinds=[serialize_size(one) for one in kinds])


@router.get("/installation/search-engines")
async def get_search_setup(caller: CurrentCaller, deps: Deps) -> SearchSetupOut:
    """Get which search engines runs with web access use, and why. No variable's value is returned."""
    return serialize_search_setup(search_engines.describe_search(deps.settings))


@router.post("/installation/search-engines/{name}/test", responses=BODY_TOO_LARGE)
async def run_search_test(caller: CurrentCaller, deps: Deps, name: EngineName, body: SearchTestIn) -> SearchTestOut:
    """Search with one engine, whether runs use it or not. The query is sent to it, and counts for its limits."""
    result = await deps.search_trial.run(name, body.query)
    return serialize_test_search(result)


@router.get("/installation/mcp-servers")
async def get_mcp_setup(caller: CurrentCaller, deps: Deps) -> McpSetupOut:
    """Get the configured MCP servers with their pinned tools. None is contacted."""
    setup = await asyncio.to_thread(mcp_settings.describe_servers, deps.mcp_servers, environment.VARIABLES)
    return serialize_mcp_setup(setup)


@router.post("/installation/mcp-servers/{name}/check", responses=SERVER_NOT_FOUND)
async def check_mcp_server(caller: CurrentCaller, deps: Deps, name: ServerName) -> McpListingOut:
    """List the present tools of a server, and what has changed since they were pinned. Takes at most 30 seconds."""
    return serialize_listing(await deps.mcp_review.check_server(name))


@router.post(
    "/installation/mcp-servers/{name}/preview",
    responses=BODY_TOO_LARGE | describe_problems(_409="OFFING_MCP_CONFIG is not set."),
)
async def preview_mcp_server(caller: CurrentOperator, deps: Deps, name: ServerName, body: McpServerIn) -> McpListingOut:
    """List the tools of a server before it is added. Nothing is stored. Only for the operator."""
    new = NewServer(name, body.url, body.bearer, body.tools)
    return serialize_listing(await deps.mcp_review.preview_server(new))


@router.put("/installation/mcp-servers/{name}", responses=BODY_TOO_LARGE | SERVER_CONFLICT)
async def add_mcp_server(caller: CurrentOperator, deps: Deps, name: ServerName, body: McpServerAddIn) -> McpListingOut:
    """Add a public server to the configuration file, and pin the tools that were reviewed. Only for the operator."""
    new = NewServer(name, body.url, body.bearer, body.tools)
    return serialize_listing(await deps.mcp_review.add_server(new, body.sha256))


@router.put("/installation/mcp-servers/{name}/pin", responses=BODY_TOO_LARGE | SERVER_NOT_FOUND | SERVER_CONFLICT)
async def pin_mcp_server(caller: CurrentOperator, deps: Deps, name: ServerName, body: McpPinIn) -> McpListingOut:
    """Pin the present tools of a server, if they are those that were reviewed. Only for the operator."""
    return serialize_listing(await deps.mcp_review.pin_server(name, body.sha256))


@router.delete("/installation/mcp-servers/{name}/pin", status_code=204, responses=SERVER_NOT_FOUND | SERVER_CONFLICT)
async def unpin_mcp_server(caller: CurrentOperator, deps: Deps, name: ServerName) -> Response:
    """Remove the pin of a server, so that runs cannot use it. Only for the operator."""
    await deps.mcp_review.unpin_server(name)
    return Response(status_code=204)


@router.get("/spending", tags=["platform"])
async def get_spending(
    caller: CurrentCaller,
    deps: Deps,
    days: Annotated[int, Query(ge=1, le=MAX_DAYS, description="Number of days including today.")] = 30,
) -> SpendingOut:
    """Get what your tenant spent by day, and by model where role calls record it."""
    return serialize_spending(await spending.get_spending(deps.database, caller.tenant_id, days))
