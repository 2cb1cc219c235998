"""`offing provider check`: try a model with each capability and each flow, in a temporary installation.

The private installation has a daily spending limit, so that all calls together stay within the cap.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

from offing import environment
from offing.bus.notifier import BusNotifier
from offing.cli.hooks import build_hooks
from offing.cli.provider import read_key
from offing.cli.show import render_run
from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, StopReason
from offing.library.readers import DocumentReaderPool
from offing.local.servers import ServerUrls
from offing.local.stack import open_stack
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE, accept_server
from offing.models.credentials import LOCAL_API_BASES, key_variable
from offing.models.key_file import KEY_FILE_VARIABLE
from offing.models.stored_provider import SERVER_PROVIDERS, STORABLE_PROVIDERS
from offing.sdk import Graph
from offing.services import provider_trial, providers, runs, tenants
from offing.services.graphs import open_registry_from_settings
from offing.services.ingestion import ingest_folder
from offing.services.providers import ProviderRequest
from offing.services.runs import RunRequest
from offing.settings import Settings, load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

FLOWS = ("agentflow", "iterresearch", "memact", "research_team")
"""The graphs that are tried, if they are installed."""
MAX_TURNS = 3
MAX_FLOW_TOKENS = 60_000
"""Maximum tokens of a flow. It is the only limit for a model without a listed price."""
MAX_SECONDS = 280.0
"""Maximum seconds from the start to the table. Flows that have not ended by then are cancelled."""
MAX_CAP_USD = 1.0
_POLL_SECONDS = 0.5
_OWN_ENDS = frozenset({StopReason.ANSWERED, StopReason.NOTHING_FOUND, StopReason.SATURATED, StopReason.TURN_LIMIT})
"""How a flow ends if its model could do what it asked for."""

QUESTION = "Which of the two bridges is longer, and by how many meters?"
DOCUMENTS: Mapping[str, str] = {
    "north-bridge.md": "# The North Bridge\n\nThe North Bridge was opened in 1931. It is 640 meters long and carries "
    "a road and two footpaths. Its engineer was Ida Falk.\n",
    "south-bridge.md": "# The South Bridge\n\nThe South Bridge was opened in 1958. It is 512 meters long and carries "
    "a railway. It was repaired in 1987 after a flood.\n",
    "ferry.md": "# The ferry\n\nBefore the bridges were built, a ferry crossed the river in eleven minutes.\n",
}
"""What the flows read. The answer is 128 meters."""

_PRIVATE_VARIABLES = (
    "DATABASE_URL",
    "OFFING_APP_DATABASE_URL",
    "REDIS_URL",
    "OFFING_EMBEDDING_MODEL",
    "OFFING_RERANK_MODEL",
    KEY_FILE_VARIABLE,
    ACCEPTED_SERVERS_VARIABLE,
)
"""Settings that would lead the check out of its own installation, or cost more than the model."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check."""

    model: str
    """`provider/model`."""
    api_base: str = ""
    """Address of another server. It counts as accepted, because the operator runs the check."""
    key_stdin: bool = False
    no_key: bool = False
    max_cost_usd: float = 0.10
    output: Path | None = None
    """The file to write. `None` means standard output."""


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """How a flow ended."""

    graph: str
    status: str
    stop_reason: str
    turns: int
    tokens: int
    cost_usd: float
    seconds: float
    words: int
    """Words of the report. 0 means that there is none."""
    citations: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Everything that the table shows."""

    model: str
    test: Mapping[str, Any]
    flows: Sequence[FlowOutcome]
    spent_usd: Decimal
    cap_usd: Decimal
    seconds: float


def check_provider(request: CheckRequest) -> int:
    """Run the check and return the exit code: 0 if the model answers and every flow has come to its own end."""
    started = time.monotonic()
    kind, key = _check_request(request)
    with tempfile.TemporaryDirectory(prefix="offing-check-") as folder:
        environment.set_variable("OFFING_HOME", f"{folder}/home")
        for name in _PRIVATE_VARIABLES:
            environment.set_variable(name, "")
        settings = load_settings()
        if address := request.api_base or LOCAL_API_BASES.get(kind, ""):
            accept_server(environment.VARIABLES, address)
        documents = _write_documents(Path(folder, "documents"))
        with open_stack(settings, build_hooks(), say=_say) as servers:
            stored = ProviderRequest(kind, kind, request.api_base, key)
            result = asyncio.run(_check(request, stored, settings, servers, documents, started))
    text = render_table(result)
    if request.output is None:
        sys.stdout.write(text)
    else:
        request.output.write_text(text, encoding="utf-8")
        _say(f"written to {request.output}")
    answers = result.test["capabilities"][0]["outcome"] == "works"
    return 0 if answers and all(flow.stop_reason in _OWN_ENDS for flow in result.flows) else 1


def _check_request(request: CheckRequest) -> tuple[str, str]:
    """Return the provider and its key. Raises InvalidInput before anything is started."""
    kind, slash, name = request.model.partition("/")
    if not slash or not name or kind not in STORABLE_PROVIDERS:
        remedy = f"Use PROVIDER/MODEL with one of: {', '.join(sorted(STORABLE_PROVIDERS))}."
        raise InvalidInput("MODEL", f"{request.model!r} cannot be checked", remedy)
    if not 0 < request.max_cost_usd <= MAX_CAP_USD:
        raise InvalidInput("--max-cost-usd", f"{request.max_cost_usd} is out of range", f"Use up to {MAX_CAP_USD}.")
    if request.no_key or (kind in SERVER_PROVIDERS and not request.key_stdin):
        return kind, ""
    configured = "" if request.key_stdin else environment.VARIABLES.get(key_variable(kind), "")
    return kind, configured or read_key(kind, from_stdin=request.key_stdin)


async def _check(
    request: CheckRequest,
    provider: ProviderRequest,
    settings: Settings,
    servers: ServerUrls,
    documents: Path,
    started: float,
) -> CheckResult:
    cap = Decimal(str(request.max_cost_usd))
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        await tenants.update_tenant(database, LOCAL_TENANT, max_daily_spend_usd=cap)
        await providers.put_provider(database, LOCAL_TENANT, provider)
        _say("trying the capabilities")
        model = request.model.partition("/")[2]
        test = await provider_trial.run_provider_test(database, LOCAL_TENANT, provider.name, model, cap)
        flows: Sequence[FlowOutcome] = ()
        if test["capabilities"][0]["outcome"] == "works":
            async with DocumentReaderPool(1) as readers:
                ingested = await ingest_folder(database, LOCAL_TENANT, documents, readers=readers)
            graphs = open_registry_from_settings(settings)
            deadline = started + MAX_SECONDS
            flows = await _run_flows(database, notifier, graphs, request.model, ingested.collection, cap, deadline)
        spent = (await tenants.get_tenant(database, LOCAL_TENANT)).spent_today_usd
    return CheckResult(request.model, test, flows, spent, cap, round(time.monotonic() - started, 1))


async def _run_flows(
    database: Database,
    notifier: BusNotifier,
    graphs: Mapping[str, Graph],
    model: str,
    collection: str,
    cap: Decimal,
    deadline: float,
) -> Sequence[FlowOutcome]:
    """Run all flows at once, within the cap and the deadline."""
    names = [name for name in FLOWS if name in graphs]
    _say(f"asking {', '.join(names)}: {QUESTION}")
    budget = Budget(MAX_TURNS, MAX_FLOW_TOKENS, cap, max(1.0, deadline - time.monotonic() - 30))
    engine = EngineConfig(engine="litellm", model=model)
    ids: dict[str, UUID] = {}
    for name in names:
        engines = {role.name: engine for role in graphs[name].roles}
        request = RunRequest(QUESTION, name, budget=budget, engines=engines, scope={"collections": [collection]})
        submitted = await runs.submit_run(database, notifier, LOCAL_TENANT, request, graphs=graphs)
        ids[name] = submitted.run.id
    return [await _wait_for_flow(database, notifier, name, id, deadline) for name, id in ids.items()]


async def _wait_for_flow(
    database: Database, notifier: BusNotifier, graph: str, run_id: UUID, deadline: float
) -> FlowOutcome:
    """Wait for a run, and cancel it at the deadline."""
    was_cancelled = False
    while True:
        summary = await render_run(database, run_id)
        if summary["status"] in ("done", "failed", "cancelled"):
            break
        if time.monotonic() > deadline:
            if was_cancelled and time.monotonic() > deadline + 10:
                break
            await runs.cancel_run(database, notifier, LOCAL_TENANT, run_id, CancelMode.DISCARD)
            was_cancelled = True
        await asyncio.sleep(_POLL_SECONDS)
    usage = summary["usage"]
    return FlowOutcome(
        graph,
        summary["status"],
        summary["stop_reason"] or "",
        usage["turns"],
        usage["tokens"],
        usage["cost_usd"],
        usage["seconds"],
        len((summary["report"] or "").split()),
        len(summary["citations"]),
    )


def render_table(result: CheckResult) -> str:
    """Return the result as Markdown, without a key, an address or a text of the provider's answers."""
    test = result.test
    lines = [f"### {result.model} with Offing {version('offing')}", ""]
    lines += ["| capability | outcome | detail |", "|---|---|---|"]
    lines += [f"| {one['name']} | {one['outcome']} | {_escape(one['detail'])} |" for one in test["capabilities"]]
    lines += ["", "| flow | end | turns | tokens | USD | seconds | words | citations |", "|---" * 8 + "|"]
    for flow in result.flows:
        end = f"{flow.status}: {flow.stop_reason}"
        numbers = f"{flow.turns} | {flow.tokens} | {flow.cost_usd:.4f} | {flow.seconds:.0f}"
        lines.append(f"| {flow.graph} | {end} | {numbers} | {flow.words} | {flow.citations} |")
    price = "" if test["priced"] else " The model has no listed price, so its calls count as free."
    cost = f"{result.spent_usd:.4f} USD of at most {result.cap_usd:.2f} USD"
    lines += ["", f"{cost} in {result.seconds:.0f} s.{price}", ""]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return strip_control(text).replace("|", "\\|").replace("\n", " ")


def _write_documents(folder: Path) -> Path:
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")
    return folder


def _say(text: str) -> None:
    print(text, file=sys.stderr)
