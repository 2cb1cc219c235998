"""Settings from environment variables, read once when a process starts.

All other code takes a `Settings` value. URLs that may contain
a password are `SecretStr`, so that no repr, log line or traceback shows them.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.langgraph_config import CONFIG_FILE, ThreadTtl, ThreadTtlStrategy

PROJECT_HOME = ".offing"
"""Folder in a LangGraph project with the data of its `offing dev`."""


def default_home() -> Path:
    """Return the default data directory.

    It is that of the LangGraph project in the current folder, if there is one; otherwise `$XDG_DATA_HOME/offing`, or
    Application Support on macOS. Raises InvalidInput if the user has no home directory.
    """
    if is_langgraph_project() and Path(PROJECT_HOME).is_dir():
        return Path(PROJECT_HOME).resolve()
    if not environment.VARIABLES.get("XDG_DATA_HOME") and os.path.expanduser("~") == "~":
        raise InvalidInput(
            "OFFING_HOME",
            "is not set, and this user has no home directory",
            "Set it to a folder that you can write to.",
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "offing"
    return Path(environment.VARIABLES.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "offing"


def is_langgraph_project(folder: Path = Path()) -> bool:
    """Return whether a folder contains a LangGraph project.

    Its `.env` belongs to its graphs. Offing does not read its settings there, because a project's DATABASE_URL is not
    a database for Offing.
    """
    return (folder / CONFIG_FILE).is_file()


def _unprefixed_alias(name: str) -> AliasChoices:
    """Return the aliases of a variable without the prefix OFFING_."""
    return AliasChoices(name, name.lower())


class Settings(BaseSettings):
    """Settings of one process.

    Variables are `OFFING_<FIELD>` unless a field names another one. Empty values are ignored.
    """

    model_config = SettingsConfigDict(
        env_prefix="OFFING_",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    database_url: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("DATABASE_URL"))] = None
    """DATABASE_URL: URL of Postgres 15 or later with the role that owns the tables and runs migrations.
    `None` starts an embedded server.
    """
    redis_url: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("REDIS_URL"))] = None
    """REDIS_URL: URL of Redis 7 or Valkey: `redis://`, `rediss://` or `unix://`. `None` starts an embedded
    server.
    """
    app_database_url: SecretStr | None = None
    """OFFING_APP_DATABASE_URL: URL of the same database with the unprivileged application role. `None`
    derives it from DATABASE_URL.
    """
    home: Path = Field(default_factory=default_home)
    """OFFING_HOME: the data directory, with the data of embedded servers. It is created with mode 0700 if
    it does not exist.
    """
    host: str = "127.0.0.1"
    cors_origins: str = ""
    """OFFING_CORS_ORIGINS: origins such as `https://chat.example`, separated by commas, whose pages may call
    LangGraph's server API. `*` means all. Empty means none, besides those that a project's `http.cors` names.
    """
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """OFFING_PORT: port of the web UI and the API. `0` selects a free port."""
    langgraph_port: Annotated[int | None, Field(ge=0, le=65535)] = None
    """OFFING_LANGGRAPH_PORT: a further port, at whose root LangGraph's server API is served. `0` selects a free
    port. `None` serves it only under `/langgraph` of the other port.
    """
    langgraph_without_key: bool = False
    """OFFING_LANGGRAPH_WITHOUT_KEY: whether requests to `langgraph_port` need no key. They belong to the local
    tenant. Only with a loopback address. `offing dev` sets it for a LangGraph project without `auth`.
    """
    langgraph_app: bool = False
    """OFFING_LANGGRAPH_APP: whether the web application that `http.app` of a LangGraph project names is served. Its
    code runs in the API's processes. `offing dev` sets it.
    """
    lease_seconds: Annotated[float, Field(gt=0)] = 30
    """OFFING_LEASE_SECONDS: time after the last heartbeat when another worker may claim the run."""
    heartbeat_interval_seconds: Annotated[float, Field(gt=0)] = 5
    """OFFING_HEARTBEAT_INTERVAL_SECONDS: interval at which a worker renews its leases. At most a quarter
    of a lease.
    """
    sweep_interval_seconds: Annotated[float, Field(gt=0)] = 5
    """OFFING_SWEEP_INTERVAL_SECONDS: interval between searches for overdue runs."""
    slice_max_turns: Annotated[int, Field(ge=1)] = 64
    """OFFING_SLICE_MAX_TURNS: maximum number of turns after which a worker releases a run to the queue."""
    slice_max_seconds: Annotated[float, Field(gt=0)] = 60
    worker_processes: Annotated[int, Field(ge=0)] = 0
    """OFFING_WORKER_PROCESSES: number of worker processes that `offing up` starts. `0` starts one process
    per CPU core, with a maximum of four.
    """
    worker_concurrency: Annotated[int, Field(ge=1)] = 200
    """OFFING_WORKER_CONCURRENCY: maximum number of runs that one worker process advances at the same time."""
    interactive_slots: Annotated[int | None, Field(ge=0)] = None
    """OFFING_INTERACTIVE_SLOTS: how many of them are reserved for runs that are not rollouts. `None` means
    one eighth, and at least one.
    """
    pool_size: Annotated[int, Field(ge=2)] = 16
    """OFFING_POOL_SIZE: number of database connections per process, in addition to that of the heartbeat."""
    keep_checkpoints_days: Annotated[float, Field(ge=0)] = 7
    """OFFING_KEEP_CHECKPOINTS_DAYS: number of days for which all checkpoints of an ended run are kept.
    Then only the last one is kept, from which the next run of its thread continues. A rollout with the
    durability `exit` keeps none after its end.
    """
    keep_running_checkpoints: Annotated[int | None, Field(ge=1)] = None
    """OFFING_KEEP_RUNNING_CHECKPOINTS: number of latest checkpoints that an adapted LangGraph graph keeps
    while it runs, for the graph and for each subgraph with its own memory. `None` keeps all of them.
    """
    thread_ttl_minutes: Annotated[float | None, Field(gt=0)] = None
    """OFFING_THREAD_TTL_MINUTES: time after the last change when a thread of a LangGraph client expires that
    names no time itself. `None` means never.
    """
    thread_ttl_strategy: ThreadTtlStrategy = ThreadTtlStrategy.DELETE
    """OFFING_THREAD_TTL_STRATEGY: what happens then. `delete`: the thread is gone for LangGraph's clients, and
    its states are deleted. `keep_latest`: its latest state is kept.
    """
    keep_run_files_days: Annotated[float | None, Field(gt=0)] = None
    """OFFING_KEEP_RUN_FILES_DAYS: number of days after the end of a run for which files of its code are
    kept. `None` keeps them as long as the run.
    """
    max_store_items: Annotated[int, Field(ge=1)] = 100_000
    """OFFING_MAX_STORE_ITEMS: maximum number of items of a tenant in LangGraph's store."""
    retention_interval_seconds: Annotated[float, Field(gt=0)] = 60
    """OFFING_RETENTION_INTERVAL_SECONDS: interval at which a worker deletes data whose retention has
    ended.
    """
    max_log_megabytes: Annotated[float, Field(gt=0)] = 5
    """OFFING_MAX_LOG_MEGABYTES: size at which a log under OFFING_HOME is rotated."""
    max_log_files: Annotated[int, Field(ge=1, le=100)] = 3
    """OFFING_MAX_LOG_FILES: maximum number of rotated logs per program."""
    max_connections: Annotated[int, Field(ge=10)] = 1000
    """OFFING_MAX_CONNECTIONS: maximum number of open connections of an API process."""
    max_unfinished_requests: Annotated[int, Field(ge=10)] = 100
    """OFFING_MAX_UNFINISHED_REQUESTS: maximum number of connections of one address with an incomplete
    request. Behind a proxy all clients have the proxy's address.
    """
    max_streams_per_tenant: Annotated[int, Field(ge=1)] = 200
    """OFFING_MAX_STREAMS_PER_TENANT: maximum number of event streams and waiting calls of a tenant in one
    API process.
    """
    max_streams_per_key: Annotated[int, Field(ge=1)] = 100
    """OFFING_MAX_STREAMS_PER_KEY: the same limit per API key. All sessions of the web UI of a tenant count
    as one key.
    """
    reader_processes: Annotated[int, Field(ge=0, le=64)] = 0
    """OFFING_READER_PROCESSES: number of processes that read documents which are uploaded to the API or
    named by `offing ask --docs`. `0` starts one per CPU core, at most 4 and at most what fits in a
    quarter of the memory.
    """
    policy_dir: Path | None = None
    """OFFING_POLICY_DIR: a folder with one folder per policy version, named NAME@VERSION. `None` starts no
    engine.
    """
    engine_url: str = ""
    """OFFING_ENGINE_URL: URL of the policy engine: `http://HOST:PORT` or `unix:///PATH`. Empty if there is
    none.
    """
    engine_key: SecretStr | None = None
    """OFFING_ENGINE_KEY: bearer token of the policy engine."""
    embedding_model: str = ""
    """OFFING_EMBEDDING_MODEL: embedding model as `provider/model`, such as
    `openai/text-embedding-3-small`. Empty means that the document library is searched by words alone.
    """
    embedding_api_base: str = ""
    """OFFING_EMBEDDING_API_BASE: URL of the embedding model's server. Empty means the provider's own."""
    embedding_dimensions: Annotated[int | None, Field(ge=1, le=16_000)] = None
    """OFFING_EMBEDDING_DIMENSIONS: length of vectors, for models that can shorten them. `None` means the
    model's own.
    """
    embedding_query_prefix: str = ""
    """OFFING_EMBEDDING_QUERY_PREFIX: text that the model expects before a query, such as `query: `."""
    embedding_passage_prefix: str = ""
    """OFFING_EMBEDDING_PASSAGE_PREFIX: text that the model expects before a passage, such as `passage: `."""
    embedding_batch_size: Annotated[int, Field(ge=1, le=2048)] = 32
    """OFFING_EMBEDDING_BATCH_SIZE: maximum number of texts per request to the embedding model."""
    rerank_model: str = ""
    """OFFING_RERANK_MODEL: reranker as `provider/model`, such as `cohere/rerank-v3.5`. Empty means none."""
    rerank_api_base: str = ""
    """OFFING_RERANK_API_BASE: URL of the reranker's server. Empty means the provider's own."""
    allowed_fetch_hosts: str = ""
    """OFFING_ALLOWED_FETCH_HOSTS: `HOST:PORT,...` from which runs may fetch pages although they are not
    public.
    """
    allowed_webhook_hosts: str = ""
    """OFFING_ALLOWED_WEBHOOK_HOSTS: `HOST:PORT,...` to which webhooks may be sent although they are not public."""
    search_engines: str = ""
    """OFFING_SEARCH_ENGINES: search engines that runs may use, such as `searxng,arxiv`. Empty means those
    whose required variables are set, or those that need no key if there are none.
    """
    mcp_config: Path | None = None
    """OFFING_MCP_CONFIG: configuration file of the MCP servers whose tools runs may use. `None` means no
    servers.
    """
    sandbox: Literal["auto", "bubblewrap", "wasi", "off"] = "auto"
    """OFFING_SANDBOX: sandbox driver for the code of runs. `auto` selects the first one that passes its
    self-test.
    """
    sandbox_packages: Path | None = None
    """OFFING_SANDBOX_PACKAGES: a folder of packages that code may import under bubblewrap. `None` means no
    packages.
    """
    sandbox_wasm: Path | None = None
    """OFFING_SANDBOX_WASM: a CPython for WASI. `None` uses the one of the extra `sandbox`."""
    searxng_url: Annotated[str, Field(validation_alias=_unprefixed_alias("SEARXNG_URL"))] = ""
    """SEARXNG_URL: URL of a SearXNG that answers in JSON. Empty if there is none."""
    tavily_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("TAVILY_API_KEY"))] = None
    brave_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("BRAVE_API_KEY"))] = None
    serper_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("SERPER_API_KEY"))] = None
    exa_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("EXA_API_KEY"))] = None
    google_pse_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("GOOGLE_PSE_API_KEY"))] = (
        None
    )
    google_pse_id: Annotated[str, Field(validation_alias=_unprefixed_alias("GOOGLE_PSE_ID"))] = ""
    """GOOGLE_PSE_ID: id of a Google Programmable Search Engine. Empty if there is none."""
    openalex_api_key: Annotated[SecretStr | None, Field(validation_alias=_unprefixed_alias("OPENALEX_API_KEY"))] = None
    """OPENALEX_API_KEY: API key of OpenAlex. `None` means the smaller allowance without a key."""
    semantic_scholar_api_key: Annotated[
        SecretStr | None, Field(validation_alias=_unprefixed_alias("SEMANTIC_SCHOLAR_API_KEY"))
    ] = None
    """SEMANTIC_SCHOLAR_API_KEY: API key of Semantic Scholar. `None` means the limits without a key."""
    wikipedia_url: Annotated[str, Field(validation_alias=_unprefixed_alias("WIKIPEDIA_URL"))] = ""
    """WIKIPEDIA_URL: URL of the Wikipedia that is searched, such as `https://de.wikipedia.org`. Empty means
    the English one.
    """
    extra_graphs: str = ""
    """OFFING_EXTRA_GRAPHS: graphs in addition to the installed ones as `module:name,module:name`, for
    development and tests.
    """
    graph_paths: str = ""
    """OFFING_GRAPH_PATHS: folders and files with graphs that are not installed, separated as in PATH.
    Empty means none.
    """
    graph_reload: bool = False
    """OFFING_GRAPH_RELOAD: whether changed folders of graphs are reloaded for new runs. `offing dev` sets
    it.
    """

    @property
    def thread_ttl(self) -> ThreadTtl | None:
        """When threads of LangGraph's clients expire that name no time. `None` means never."""
        minutes = self.thread_ttl_minutes
        return None if minutes is None else ThreadTtl(minutes, self.thread_ttl_strategy)


UNPREFIXED_VARIABLES = frozenset(
    (
        "BRAVE_API_KEY",
        "DATABASE_URL",
        "EXA_API_KEY",
        "GOOGLE_PSE_API_KEY",
        "GOOGLE_PSE_ID",
        "OPENALEX_API_KEY",
        "REDIS_URL",
        "SEARXNG_URL",
        "SEMANTIC_SCHOLAR_API_KEY",
        "SERPER_API_KEY",
        "TAVILY_API_KEY",
        "WIKIPEDIA_URL",
    )
)
"""Variables without the prefix OFFING_, because their names are common to other programs."""


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Load the settings from the environment, then from `env_file` if it exists and is not of a LangGraph project.

    Raises InvalidInput that names the first invalid variable.
    """
    if env_file is not None and is_langgraph_project(env_file.parent):
        env_file = None
    try:
        settings = Settings(_env_file=env_file)  # pyright: ignore[reportCallIssue]
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        name = _variable_name(str(first["loc"][0]))
        raise InvalidInput(name, first["msg"], "Correct it in the environment or in .env, or remove it.") from None
    _check_model_name("OFFING_EMBEDDING", settings.embedding_model, settings.embedding_api_base)
    _check_model_name("OFFING_RERANK", settings.rerank_model, settings.rerank_api_base)
    interval, max_interval = settings.heartbeat_interval_seconds, settings.lease_seconds / 4
    if interval > max_interval:  # so that three heartbeats may be late before a lease expires
        problem = (
            f"{interval:g} s is more than a quarter of OFFING_LEASE_SECONDS, which is {settings.lease_seconds:g} s"
        )
        raise InvalidInput(
            "OFFING_HEARTBEAT_INTERVAL_SECONDS",
            problem,
            f"Set it to at most {max_interval:g}, or increase OFFING_LEASE_SECONDS.",
        )
    return settings


def _check_model_name(prefix: str, model: str, api_base: str) -> None:
    """Raise InvalidInput if a model has no provider, or if a server has no model."""
    provider, _, name = model.partition("/")
    if model and not (provider and name):
        raise InvalidInput(
            f"{prefix}_MODEL",
            f"{model!r} does not name a provider and a model",
            "Use provider/model, such as openai/NAME for a server with OpenAI's API.",
        )
    if api_base and not model:
        raise InvalidInput(f"{prefix}_API_BASE", "is set without a model", f"Set {prefix}_MODEL as well, or remove it.")


def get_app_database_url(settings: Settings) -> str:
    """Return the database URL of the application role. `offing up` sets it for its child processes."""
    return _require_secret(settings.app_database_url, "OFFING_APP_DATABASE_URL", "postgresql://offing_app@HOST/NAME")


def get_redis_url(settings: Settings) -> str:
    """Return the URL of Redis for notifications, live updates and Celery messages.

    `offing up` sets it for its child processes.
    """
    return _require_secret(settings.redis_url, "REDIS_URL", "redis://HOST:6379/0")


def _require_secret(value: SecretStr | None, name: str, example: str) -> str:
    if value is None:
        raise InvalidInput(
            name, "is not set", f"Start Offing with `offing up`, or set it to a value such as {example}."
        )
    return value.get_secret_value()


def _variable_name(location: str) -> str:
    """Return the environment variable of a pydantic error location."""
    name = location.upper()
    is_full_name = name in UNPREFIXED_VARIABLES or name.startswith("OFFING_")
    return name if is_full_name else f"OFFING_{name}"
