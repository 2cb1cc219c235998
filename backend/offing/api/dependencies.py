"""Clients and settings that an API process holds while it serves.

The lifespan of the app opens and closes them.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import httpx
from fastapi import Depends, Request

from offing import environment
from offing.api.bounded_notifier import BoundedNotifier
from offing.api.public_limits import PublicLimits
from offing.api.run_reads import SharedRunReads
from offing.api.stream_limits import StreamLimits
from offing.api.uploads import MAX_READER_WAIT_SECONDS, UploadGate
from offing.bus.live import LiveBus
from offing.bus.notifier import BusNotifier
from offing.bus.run_streams import RunStreams
from offing.certificates import load_ssl_context
from offing.core.model import EngineConfig
from offing.library.readers import DocumentReaderPool
from offing.mcp.client import McpClient
from offing.mcp.server_registry import McpServerRegistry
from offing.models.engine_discovery import default_engine_config, role_engine_configs
from offing.report_files.writers import ReportFileWriter
from offing.sdk import Graph
from offing.services import graphs, webhooks
from offing.services.access import CachedAuthenticator
from offing.services.health import SandboxCheck
from offing.services.langgraph_auth import ProjectAuth
from offing.services.library_models import LibraryModels, open_library_models
from offing.services.mcp_settings import McpReview
from offing.services.metrics import MetricsExporter
from offing.services.project_auth import open_project_auth
from offing.services.project_objects import ProjectObjectLoader
from offing.services.search_engines import SearchTrial
from offing.settings import Settings, get_app_database_url, get_redis_url
from offing.storage.pool import Database
from offing.web.post import Poster


@dataclass(frozen=True, slots=True)
class AppDependencies:
    settings: Settings
    database: Database
    notifier: BoundedNotifier
    bus: LiveBus
    run_reads: SharedRunReads
    """What the followers of runs read."""
    run_streams: RunStreams
    """What runs of LangGraph's clients stream."""
    authenticator: CachedAuthenticator
    stream_limits: StreamLimits
    public_limits: PublicLimits
    """Limits the requests of readers without an account."""
    graphs: Mapping[str, Graph]
    project_auth: ProjectObjectLoader[ProjectAuth]
    """The Auth object of the LangGraph project that is served."""
    metrics: MetricsExporter
    default_engine: EngineConfig
    role_engines: Mapping[str, EngineConfig]
    """Engines that the operator configured for roles, by role name."""
    mcp_servers: McpServerRegistry
    """MCP servers that runs may name."""
    document_readers: DocumentReaderPool
    """Reader pool for the documents of all uploads."""
    report_writer: ReportFileWriter
    """Writes all exports as DOCX and PDF."""
    upload_gate: UploadGate
    poster: Poster
    """Sends messages that try a webhook."""
    library_models: LibraryModels
    """The models that searches of the library use."""
    mcp_review: McpReview
    """Lists the tools of MCP servers for people, and pins them."""
    search_trial: SearchTrial
    sandbox_check: SandboxCheck


@asynccontextmanager
async def open_dependencies(settings: Settings) -> AsyncGenerator[AppDependencies]:
    """Open what a process needs on the event loop that runs it. Raises InvalidInput if an address is not set."""
    app_url, redis_url = get_app_database_url(settings), get_redis_url(settings)
    async with (
        Database(app_url, max_connections=settings.pool_size) as database,
        BusNotifier(redis_url) as notifier,
        RunStreams(redis_url) as run_streams,
        webhooks.open_poster(settings) as poster,
        DocumentReaderPool(settings.reader_processes, max_wait_seconds=MAX_READER_WAIT_SECONDS) as readers,
        McpClient(environment.VARIABLES) as mcp_client,
        httpx.AsyncClient(follow_redirects=False, verify=load_ssl_context()) as search_client,
        SandboxCheck(settings) as sandbox_check,
    ):
        bounded_notifier = BoundedNotifier(notifier)
        installed = graphs.open_registry_from_settings(settings)
        servers = McpServerRegistry(settings.mcp_config)
        yield AppDependencies(
            settings=settings,
            database=database,
            notifier=bounded_notifier,
            bus=notifier.live,
            run_reads=SharedRunReads(database, notifier.live, settings.lease_seconds),
            run_streams=run_streams,
            authenticator=CachedAuthenticator(database),
            stream_limits=StreamLimits(settings.max_streams_per_tenant, settings.max_streams_per_key),
            public_limits=PublicLimits(),
            graphs=installed,
            project_auth=open_project_auth(settings),
            metrics=MetricsExporter(database, notifier.live),
            default_engine=default_engine_config(),
            role_engines=role_engine_configs(),
            mcp_servers=servers,
            document_readers=readers,
            report_writer=ReportFileWriter(),
            upload_gate=UploadGate(),
            poster=poster,
            library_models=open_library_models(settings),
            mcp_review=McpReview(mcp_client, servers),
            search_trial=SearchTrial(settings, search_client),
            sandbox_check=sandbox_check,
        )
        await bounded_notifier.close()


def get_dependencies(request: Request) -> AppDependencies:
    return request.app.state.dependencies


async def provide_dependencies(request: Request) -> AppDependencies:
    """Do the same as `get_dependencies` for routes. The framework would call that one in another thread."""
    return get_dependencies(request)


Deps = Annotated[AppDependencies, Depends(provide_dependencies)]
