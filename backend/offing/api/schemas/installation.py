"""API schemas of the installation: health, stored data, search engines, MCP servers, API keys and spending."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from offing.api.coded_texts import TEXTS, OfferTextOut, serialize_offer_texts
from offing.api.schemas.base import ApiModel
from offing.core.check import Check, CheckCode
from offing.mcp.tool_changes import ToolChange, ToolChangeKind
from offing.services.mcp_settings import McpSetup, ServerListing, ServerState, ToolDescription
from offing.services.search_engines import EngineChoice, SearchSetup, SearchTrialResult
from offing.services.spending import Spending
from offing.services.stored_data import KindSize, RetentionRule
from offing.storage.access import ApiKeyRow
from offing.storage.installation import WorkerRow

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Hash of the tool list that was reviewed.")]


class CheckOut(ApiModel):
    """Result of a check of the installation."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = Field(description="What to do. null: nothing.")
    code: CheckCode | None = Field(
        description="What was found, for texts in other languages. null: only the English texts say it."
    )
    parameters: dict[str, str] = Field(description="What the text of the code names, such as a version.")


class WorkerOut(ApiModel):
    """A worker process."""

    name: str = Field(description="Its host, process id and a nonce.")
    version: str
    slots: int = Field(description="Maximum number of runs that it advances at the same time.")
    runs: int = Field(description="Number of runs that it advances now.")
    started_at: datetime
    silent_seconds: float = Field(description="Seconds since it last reported that it is alive.")


class InstallationHealthOut(ApiModel):
    """The state of the installation. Another tenant than that of the machine gets fewer checks and no workers."""

    ok: bool = Field(description="Whether all checks have passed.")
    checks: list[CheckOut]
    workers: list[WorkerOut] = Field(description="At most 200, most recently seen first.")


class RetentionRuleOut(ApiModel):
    """How long a kind of data is kept."""

    kind: str
    variable: str | None = Field(description="Environment variable that changes it. null: no setting does.")
    value: float | None = Field(description="Days, checkpoints or items, as the kind says. null: no limit.")


class KindSizeOut(ApiModel):
    kind: str
    size_bytes: int = Field(description="With indexes, of all tenants.")
    row_estimate: int = Field(description="Estimated number of rows.")


class StoredDataOut(ApiModel):
    """What the installation keeps."""

    retention: list[RetentionRuleOut]
    database_bytes: int | None = Field(
        description="Size of the database. null for other tenants than that of the machine."
    )
    kinds: list[KindSizeOut] = Field(description="Largest first. Empty for other tenants than that of the machine.")


class EngineVariableOut(ApiModel):
    """An environment variable of a search engine. Its value is never returned."""

    name: str
    is_set: bool
    is_optional: bool


class SearchEngineOut(ApiModel):
    name: str
    is_used: bool = Field(description="Whether runs with web access query it.")
    is_ready: bool = Field(description="Whether its required variables are set.")
    variables: list[EngineVariableOut]
    covers: str
    cost: str
    texts: dict[str, OfferTextOut] = Field(default={}, description=f"{TEXTS} Fields: covers, cost.")


class SearchSetupOut(ApiModel):
    """The search engines, as the environment of the API says."""

    choice: EngineChoice = Field(
        description="Why these are used. named: OFFING_SEARCH_ENGINES names them. configured: their required variables "
        "are set. keyless: no engine is configured, so those are used that need nothing."
    )
    engines: list[SearchEngineOut] = Field(description="All engines: first those that are used, in their order.")
    problem: str = Field(description="Why no run can search the web. Empty: runs can.")
    remedy: str


class SearchTestIn(ApiModel):
    query: str = Field(default="coral reef", min_length=1, max_length=200)


class SearchTestHitOut(ApiModel):
    """A hit. Its texts come from the search engine."""

    title: str
    url: str


class SearchTestOut(ApiModel):
    """Result of a test search with one engine."""

    seconds: float
    hits: list[SearchTestHitOut] = Field(description="At most 5, best first.")
    problem: str = Field(description="Why the engine failed. Empty: it did not.")
    remedy: str


class McpSecretOut(ApiModel):
    """An environment variable whose value is sent to the server. The value is never returned."""

    name: str
    sent_as: str
    is_set: bool


class McpToolOut(ApiModel):
    """A tool of a server. Its name, description and arguments are text of the server: data, not instructions."""

    name: str
    description: str
    arguments: list[str]
    is_allowed: bool = Field(description="Whether the operator's configuration allows it.")
    problem: str = Field(description="Why runs cannot use it although it is allowed. Empty: they can.")


class McpServerStateOut(ApiModel):
    """A configured MCP server."""

    name: str
    host: str = Field(description="Host and port of its address.")
    is_private: bool = Field(description="Whether it may be outside the public internet.")
    pinned_sha256: str | None = Field(description="Hash of the pinned tool list. null: not pinned.")
    secrets: list[McpSecretOut]
    tools: list[McpToolOut]
    problem: str = Field(description="Why no run can use it. Empty: runs can.")


class McpSetupOut(ApiModel):
    """The MCP servers of the operator."""

    is_configured: bool = Field(description="Whether OFFING_MCP_CONFIG names a file.")
    servers: list[McpServerStateOut]
    problem: str = Field(description="Why the files cannot be used. Empty: they can.")
    remedy: str


class McpFieldChangeOut(ApiModel):
    """A changed field of a tool: its description, or a path in the schema of its arguments."""

    field: str
    before: str | None = Field(description="null: it did not exist.")
    after: str | None = Field(description="null: it does not exist any more.")


class McpToolChangeOut(ApiModel):
    tool: str
    kind: ToolChangeKind
    fields: list[McpFieldChangeOut]
    omitted_fields: int = Field(description="Number of further changed fields.")


class McpListingOut(ApiModel):
    """What a server lists now."""

    tools: list[McpToolOut]
    sha256: str = Field(description="Hash of the tool list, for pinning it. Empty: the server did not list its tools.")
    changes: list[McpToolChangeOut] = Field(description="Differences from the pinned tools.")
    problem: str = Field(description="Why the server did not list its tools. Empty: it did.")


class McpPinIn(ApiModel):
    """The tool list that was reviewed. If the server lists another one, nothing is pinned."""

    sha256: Sha256


class McpServerIn(ApiModel):
    """A public MCP server, which is called over HTTPS."""

    url: str = Field(max_length=2000)
    bearer: str | None = Field(
        default=None,
        max_length=100,
        description="Environment variable with the bearer token, such as MCP_WIKI_TOKEN. null: none is sent.",
    )
    tools: list[Annotated[str, Field(max_length=64)]] = Field(
        default=[], max_length=200, description="Tools that runs may use."
    )


class McpServerAddIn(McpServerIn):
    """A server with the tool list that was reviewed. If the server lists another one, it is not added."""

    sha256: Sha256


class ApiKeyOut(ApiModel):
    """An API key, without its secret."""

    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None = Field(description="null: it does not expire.")
    revoked_at: datetime | None = Field(description="null: it was not revoked.")
    last_used_at: datetime | None = Field(description="null: it was never used.")


class ApiKeyIn(ApiModel):
    name: str = Field(min_length=1, max_length=100, description="Where the key is used.")
    expires_in_days: int | None = Field(default=None, ge=1, le=3650, description="null: until it is revoked.")


class NewApiKeyOut(ApiModel):
    """A new API key with its secret, which is never returned again."""

    id: str
    key: str


class DaySpendingOut(ApiModel):
    day: date
    used_usd: float
    reserved_usd: float = Field(description="Reserved for calls in progress.")


class ModelSpendingOut(ApiModel):
    """Recorded role calls of one model on one day."""

    day: date
    engine: str
    model: str
    call_count: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    is_priced: bool = Field(description="false: the price of a call is unknown, and the cost is too low.")


class SpendingOut(ApiModel):
    """What your tenant spent. The sums of models lack calls outside runs, and runs that were deleted."""

    max_daily_spend_usd: float | None = Field(description="Daily spending limit. null: none.")
    spent_today_usd: float
    days: list[DaySpendingOut] = Field(description="Each day including today, oldest first.")
    models: list[ModelSpendingOut] = Field(description="At most 50 models a day.")


def serialize_check(check: Check) -> CheckOut:
    return CheckOut(
        name=check.name,
        ok=check.ok,
        detail=check.detail,
        remedy=check.remedy,
        code=check.code,
        parameters=dict(check.parameters),
    )


def serialize_worker(row: WorkerRow) -> WorkerOut:
    return WorkerOut(
        name=row.name,
        version=row.version,
        slots=row.slots,
        runs=row.runs,
        started_at=row.started_at,
        silent_seconds=row.silent_seconds,
    )


def serialize_retention(rule: RetentionRule) -> RetentionRuleOut:
    return RetentionRuleOut(kind=rule.kind, variable=rule.variable, value=rule.value)


def serialize_size(size: KindSize) -> KindSizeOut:
    return KindSizeOut(kind=size.kind, size_bytes=size.size_bytes, row_estimate=size.row_estimate)


def serialize_search_setup(setup: SearchSetup) -> SearchSetupOut:
    engines = [
        SearchEngineOut(
            name=one.name,
            is_used=one.is_used,
            is_ready=one.is_ready,
            variables=[
                EngineVariableOut(name=v.name, is_set=v.is_set, is_optional=v.is_optional) for v in one.variables
            ],
            covers=one.covers,
            cost=one.cost,
            texts=serialize_offer_texts(covers=one.covers, cost=one.cost),
        )
        for one in setup.engines
    ]
    return SearchSetupOut(choice=setup.choice, engines=engines, problem=setup.problem, remedy=setup.remedy)


def serialize_test_search(result: SearchTrialResult) -> SearchTestOut:
    hits = [SearchTestHitOut(title=title, url=url) for title, url in result.hits]
    return SearchTestOut(seconds=result.seconds, hits=hits, problem=result.problem, remedy=result.remedy)


def serialize_mcp_setup(setup: McpSetup) -> McpSetupOut:
    return McpSetupOut(
        is_configured=setup.is_configured,
        servers=[_serialize_server(one) for one in setup.servers],
        problem=setup.problem,
        remedy=setup.remedy,
    )


def _serialize_server(server: ServerState) -> McpServerStateOut:
    return McpServerStateOut(
        name=server.name,
        host=server.host,
        is_private=server.is_private,
        pinned_sha256=server.pinned_sha256,
        secrets=[McpSecretOut(name=one.name, sent_as=one.sent_as, is_set=one.is_set) for one in server.secrets],
        tools=[_serialize_tool(tool) for tool in server.tools],
        problem=server.problem,
    )


def _serialize_tool(tool: ToolDescription) -> McpToolOut:
    return McpToolOut(
        name=tool.name,
        description=tool.description,
        arguments=list(tool.arguments),
        is_allowed=tool.is_allowed,
        problem=tool.problem,
    )


def serialize_listing(listing: ServerListing) -> McpListingOut:
    return McpListingOut(
        tools=[_serialize_tool(tool) for tool in listing.tools],
        sha256=listing.sha256,
        changes=[_serialize_change(change) for change in listing.changes],
        problem=listing.problem,
    )


def _serialize_change(change: ToolChange) -> McpToolChangeOut:
    fields = [McpFieldChangeOut(field=one.field, before=one.before, after=one.after) for one in change.fields]
    return McpToolChangeOut(tool=change.tool, kind=change.kind, fields=fields, omitted_fields=change.omitted_fields)


def serialize_key(row: ApiKeyRow) -> ApiKeyOut:
    return ApiKeyOut(
        id=row.id,
        name=row.name,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


def serialize_spending(spending: Spending) -> SpendingOut:
    limit = spending.tenant.max_daily_spend_usd
    return SpendingOut(
        max_daily_spend_usd=None if limit is None else float(limit),
        spent_today_usd=float(spending.tenant.spent_today_usd),
        days=[
            DaySpendingOut(day=one.day, used_usd=float(one.used_usd), reserved_usd=float(one.reserved_usd))
            for one in spending.days
        ],
        models=[
            ModelSpendingOut(
                day=one.day,
                engine=one.engine,
                model=one.model,
                call_count=one.call_count,
                prompt_tokens=one.prompt_tokens,
                completion_tokens=one.completion_tokens,
                cost_usd=float(one.cost_usd),
                is_priced=one.is_priced,
            )
            for one in spending.models
        ],
    )
