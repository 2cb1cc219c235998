"""What the environment says, read once at the edge of each process.

The only home of environment names and their defaults. Everything inside takes a `Settings` value; nothing else reads
`os.environ`. Addresses that may carry a password are `SecretStr`, so that no repr, log line or traceback shows them.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from offing.core.errors import InvalidInput


def default_home() -> Path:
    """The platform's folder for a user's data: `$XDG_DATA_HOME/offing`, on macOS Application Support.

    Raises InvalidInput for a user without a home.
    """
    if not os.environ.get("XDG_DATA_HOME") and os.path.expanduser("~") == "~":
        raise InvalidInput("OFFING_HOME", "is not set and this user has no home", "Set it to a folder you may write.")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "offing"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "offing"


def _named(name: str) -> AliasChoices:
    """Reads the variable `name` as it stands, without our prefix."""
    return AliasChoices(name, name.lower())


class Settings(BaseSettings):
    """One process's settings. Names are `OFFING_<FIELD>` unless a field says otherwise; empty values count as unset."""

    model_config = SettingsConfigDict(
        env_prefix="OFFING_",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    database_url: Annotated[SecretStr | None, Field(validation_alias=_named("DATABASE_URL"))] = None
    """DATABASE_URL: a Postgres 15 or later, as the role that owns the tables and runs migrations. None: embedded."""
    redis_url: Annotated[SecretStr | None, Field(validation_alias=_named("REDIS_URL"))] = None
    """REDIS_URL: a Redis 7 or Valkey, `redis://`, `rediss://` or `unix://`. None: embedded."""
    app_database_url: SecretStr | None = None
    """OFFING_APP_DATABASE_URL: the same database as the unprivileged application role. None: derived, see `local`."""
    home: Path = Field(default_factory=default_home)
    """Where embedded servers keep their data. Made with mode 0700 when absent."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """The page and the API listen here. 0: any free port."""
    lease_seconds: Annotated[float, Field(gt=0)] = 30
    """How long a claim lasts without a heartbeat before another worker may take the run."""
    heartbeat_seconds: Annotated[float, Field(gt=0)] = 5
    """How often a worker renews its leases. At most a quarter of a lease."""
    sweep_seconds: Annotated[float, Field(gt=0)] = 5
    """How often forgotten runs are looked for."""
    slice_turns: Annotated[int, Field(ge=1)] = 64
    """Turns after which a worker hands a run back to the queue."""
    slice_seconds: Annotated[float, Field(gt=0)] = 60
    workers: Annotated[int, Field(ge=0)] = 0
    """Worker processes that `offing up` starts. 0: one a core, four at most."""
    worker_concurrency: Annotated[int, Field(ge=1)] = 200
    """Runs that one worker process advances at once."""
    interactive_slots: Annotated[int | None, Field(ge=0)] = None
    """OFFING_INTERACTIVE_SLOTS: of those, how many rollouts never take. None: an eighth, and at least one."""
    pool_size: Annotated[int, Field(ge=2)] = 16
    """Database connections of one process, the heartbeat's own not counted."""
    keep_checkpoints_days: Annotated[float, Field(ge=0)] = 7
    """OFFING_KEEP_CHECKPOINTS_DAYS: days for which all checkpoints of an ended run are kept. Then the last one is,
    from which the next run of its thread goes on. A rollout under the durability `exit` keeps none from its end on."""
    keep_running_checkpoints: Annotated[int | None, Field(ge=1)] = None
    """OFFING_KEEP_RUNNING_CHECKPOINTS: the number of latest checkpoints that a graph written for LangGraph alone keeps
    while it runs, for its own graph and for each subgraph with a memory. None: all of them."""
    keep_run_files_days: Annotated[float | None, Field(gt=0)] = None
    """OFFING_KEEP_RUN_FILES_DAYS: days for which files that a run's code wrote are kept after its end. None: as long as
    the run."""
    store_items: Annotated[int, Field(ge=1)] = 100_000
    """OFFING_STORE_ITEMS: the maximum number of items that a tenant's runs have in LangGraph's store."""
    retention_seconds: Annotated[float, Field(gt=0)] = 60
    """OFFING_RETENTION_SECONDS: how often a worker looks for what was kept for long enough."""
    log_megabytes: Annotated[float, Field(gt=0)] = 5
    """OFFING_LOG_MEGABYTES: the size at which a log under OFFING_HOME is put aside and begun anew."""
    log_files: Annotated[int, Field(ge=1, le=100)] = 3
    """OFFING_LOG_FILES: how many logs that were put aside are kept of each program."""
    connections: Annotated[int, Field(ge=10)] = 1000
    """OFFING_CONNECTIONS: the maximum number of connections that an API process has open."""
    unfinished_requests: Annotated[int, Field(ge=10)] = 100
    """OFFING_UNFINISHED_REQUESTS: the maximum number of connections of one address whose request has not arrived whole.
    Behind a proxy all have the proxy's address."""
    streams_per_tenant: Annotated[int, Field(ge=1)] = 200
    """OFFING_STREAMS_PER_TENANT: the maximum number of event streams and waiting calls that a tenant has open at one
    API process."""
    streams_per_key: Annotated[int, Field(ge=1)] = 100
    """OFFING_STREAMS_PER_KEY: the same for an API key. All sessions of the page of a tenant count as one key."""
    readers: Annotated[int, Field(ge=0, le=64)] = 0
    """OFFING_READERS: processes that read the documents which are uploaded to the API or named by `offing ask --docs`.
    `0` starts one per processor, at most 4, as long as a quarter of the machine's memory has room for them."""
    policies: Path | None = None
    """OFFING_POLICIES: a folder with one folder a policy version, NAME@VERSION. None: no engine is started here."""
    engine_url: str = ""
    """OFFING_ENGINE_URL: where the policy engine listens: `http://HOST:PORT`, `unix:///PATH`. Empty: nowhere."""
    engine_key: SecretStr | None = None
    """OFFING_ENGINE_KEY: the bearer token that it wants."""
    fetch_hosts: str = ""
    """OFFING_FETCH_HOSTS: `HOST:PORT,...` that runs may fetch pages from although they are not public."""
    search: str = ""
    """OFFING_SEARCH: search engines that runs may ask, such as `searxng,arxiv`. Empty: those that are set up, and arXiv
    where none is."""
    mcp: Path | None = None
    """OFFING_MCP: the file that names MCP servers whose tools runs may use. None: there are none."""
    sandbox: Literal["auto", "bubblewrap", "wasi", "off"] = "auto"
    """OFFING_SANDBOX: what confines the code of runs. `auto`: the first of those that stands its self-test."""
    sandbox_packages: Path | None = None
    """OFFING_SANDBOX_PACKAGES: a folder of packages that code may import under bubblewrap. None: there are none."""
    sandbox_wasm: Path | None = None
    """OFFING_SANDBOX_WASM: a CPython for WASI. None: the one that the extra `sandbox` brings."""
    searxng_url: Annotated[str, Field(validation_alias=_named("SEARXNG_URL"))] = ""
    """SEARXNG_URL: a SearXNG that answers in JSON. Empty: there is none."""
    tavily_api_key: Annotated[SecretStr | None, Field(validation_alias=_named("TAVILY_API_KEY"))] = None
    brave_api_key: Annotated[SecretStr | None, Field(validation_alias=_named("BRAVE_API_KEY"))] = None
    graphs: str = ""
    """More graphs than the installed ones, as `module:name,module:name`; for authors and tests."""
    graph_paths: str = ""
    """OFFING_GRAPH_PATHS: folders and files with graphs that are not installed, separated as in PATH. Empty: none."""
    graph_reload: bool = False
    """OFFING_GRAPH_RELOAD: whether a folder that changes is loaded anew for new runs; `offing dev` sets it."""


BARE = frozenset(("BRAVE_API_KEY", "DATABASE_URL", "REDIS_URL", "SEARXNG_URL", "TAVILY_API_KEY"))
"""Variables without our prefix, because others call them so."""


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Settings from the environment, then from `env_file` where it exists.

    Raises `InvalidInput` naming the first variable that cannot be used.
    """
    try:
        settings = Settings(_env_file=env_file)  # pyright: ignore[reportCallIssue]
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        name = _variable(str(first["loc"][0]))
        raise InvalidInput(name, first["msg"], "Correct it in the environment or .env, or unset it.") from None
    most = settings.lease_seconds / 4
    if settings.heartbeat_seconds > most:  # so that three heartbeats may be late before a lease ends
        what = (
            f"{settings.heartbeat_seconds:g} s is over a quarter of OFFING_LEASE_SECONDS, {settings.lease_seconds:g} s"
        )
        raise InvalidInput("OFFING_HEARTBEAT_SECONDS", what, f"Set it to {most:g} or less, or raise the lease.")
    return settings


def app_address(settings: Settings) -> str:
    """Where the application connects, under its unprivileged role. `offing up` sets it for its children."""
    return _needed(settings.app_database_url, "OFFING_APP_DATABASE_URL", "postgresql://offing_app@HOST/NAME")


def redis_address(settings: Settings) -> str:
    """Where hints, live state and messages go. `offing up` sets it for its children."""
    return _needed(settings.redis_url, "REDIS_URL", "redis://HOST:6379/0")


def _needed(value: SecretStr | None, name: str, example: str) -> str:
    if value is None:
        raise InvalidInput(name, "is not set", f"Start through `offing up`, or set it, such as {example}.")
    return value.get_secret_value()


def _variable(location: str) -> str:
    """The environment variable that pydantic's error location stands for."""
    name = location.upper()
    bare = name in BARE or name.startswith("OFFING_")
    return name if bare else f"OFFING_{name}"
