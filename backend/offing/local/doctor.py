"""Checks of the requirements on this machine, each with its fix.

Checks are values, and the caller renders them. Only the names of provider keys are read, never
their values.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from offing import environment
from offing.core.check import Check
from offing.core.errors import OffingError
from offing.local.api_address import choose_port
from offing.local.child_environment import build_server_environment
from offing.local.data_directory import locate_data_directory, read_stack_info
from offing.local.engine_process import get_policy_dir, has_policies, with_engine_url
from offing.local.keyvalue import list_programs as keyvalue_installations
from offing.local.postgres import list_installations as postgres_installations
from offing.local.servers import open_servers
from offing.models.credentials import ENGINE_URL_VARIABLE
from offing.models.embedding_models import describe_embedder, describe_reranker, open_embedder, open_reranker
from offing.models.engine_discovery import probe_model_servers
from offing.packaged_files import find_web_dir
from offing.services.health import check_disk, check_mcp_servers, check_sandbox, check_search
from offing.settings import Settings

MIN_PYTHON_VERSION = (3, 11)
MIN_NODE_MAJOR = 20
PROVIDER_KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "OLLAMA_HOST",
)
"""Variables that litellm reads. Only common ones are listed, to show which keys it will find."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Functions that probe external servers. They return a description, or raise an error with the reason."""

    database: Callable[[str], str]
    redis: Callable[[str], str]
    engine: Callable[[str, str], str]
    """Receives the URL and the key of the policy engine."""


def run_checks(settings: Settings, probes: Probes) -> Iterator[Check]:
    """Run every check and yield its result immediately. Some checks take a second."""
    yield inspect_python()
    yield check_disk(settings.home)
    yield inspect_data_directory(settings.home)
    yield inspect_port(settings)
    yield page()
    if find_web_dir() is None:
        yield inspect_node()
    yield from _inspect_servers(settings, probes)
    yield inspect_provider_keys(environment.VARIABLES)
    yield inspect_model_servers(_build_environment(settings))
    yield inspect_policy_engine(settings, probes.engine)
    yield from inspect_retrieval_models(settings)
    yield check_search(settings)
    yield check_mcp_servers(settings)
    yield asyncio.run(check_sandbox(settings))


def _build_environment(settings: Settings) -> Mapping[str, str]:
    """Return the environment with OFFING_HOME from the settings, where accepted servers are stored."""
    return {**environment.VARIABLES, "OFFING_HOME": str(settings.home)}


def _inspect_servers(settings: Settings, probes: Probes) -> Iterator[Check]:
    if settings.database_url is None:
        yield _inspect_postgres()
    else:
        yield _inspect_server("DATABASE_URL", settings.database_url.get_secret_value(), probes.database)
    if settings.redis_url is None:
        yield _inspect_keyvalue()
    else:
        yield _inspect_server("REDIS_URL", settings.redis_url.get_secret_value(), probes.redis)
    if settings.database_url is None or settings.redis_url is None:
        yield inspect_embedded_servers(settings)


def inspect_python() -> Check:
    version_text = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= MIN_PYTHON_VERSION
    return Check(
        "Python", ok, version_text, None if ok else "Install Python 3.11 or later and run `make setup PYTHON=path`."
    )


def inspect_node() -> Check:
    """Check Node.js, which is needed only until the web UI has been built."""
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None:
        return Check("Node", False, "node or npm not found", "Install Node.js 20 or later, which includes npm.")
    environment = build_server_environment()
    version = subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    ok = int(version.lstrip("v").split(".")[0]) >= MIN_NODE_MAJOR
    return Check("Node", ok, version, None if ok else "Install Node.js 20 or later.")


def page() -> Check:
    built = find_web_dir()
    if built is None:
        return Check("Web UI", False, "not built; the API works without it", "Run `make setup`.")
    return Check("Web UI", True, str(built))


def inspect_data_directory(folder: Path) -> Check:
    """Check that the data directory belongs to this user, is writable and private, or can be created."""
    if not folder.exists():
        ok = os.access(_nearest_existing(folder), os.W_OK | os.X_OK)
        return Check(
            "Home",
            ok,
            f"{folder} will be created",
            None if ok else "Set OFFING_HOME to a folder that you can write to.",
        )
    status = folder.stat()
    if status.st_uid != os.geteuid() or not os.access(folder, os.W_OK | os.X_OK):
        return Check("Home", False, f"{folder} belongs to another user", "Set OFFING_HOME to a folder that you own.")
    ok = status.st_mode & 0o066 == 0
    return Check("Home", ok, f"{folder}", None if ok else f"Other users can read it. Run: chmod 700 {folder}")


def inspect_port(settings: Settings) -> Check:
    info = read_stack_info(locate_data_directory(settings.home))
    if info is not None and info.page_url is not None:
        return Check("Port", True, f"Offing is running at {info.page_url}")
    try:
        choose_port(settings.host, settings.port)
    except OffingError as error:
        return Check("Port", False, error.args[0], error.args[1])
    return Check("Port", True, f"{settings.port} on {settings.host} is free")


def inspect_provider_keys(environment: Mapping[str, str]) -> Check:
    """Report the names of provider keys that are set. No key is needed to start."""
    names = [name for name in PROVIDER_KEYS if environment.get(name)]
    return Check("Model providers", True, ", ".join(names) or "no key set; the extractive engine needs none")


def inspect_model_servers(environment: Mapping[str, str]) -> Check:
    """Report which model servers answer on this machine and whether they are accepted. None is needed."""
    servers = asyncio.run(probe_model_servers(environment))
    offered = [server.offered_at for server in servers if server.offered_at]
    remedy = f"To allow runs to use it, run: offing engine accept {offered[0]}" if offered else None
    return Check("Model servers", True, "; ".join(one.note for one in servers) or "none found on this machine", remedy)


def inspect_policy_engine(settings: Settings, probe: Callable[[str, str], str]) -> Check:
    """Report the versions in the policy engine. It is needed only after training."""
    name, ours = "Policy engine", not settings.engine_url
    paths = locate_data_directory(settings.home)
    url = with_engine_url(settings, paths).engine_url
    if not url or not (settings.engine_url or has_policies(settings)):
        return Check(name, True, "not configured; only needed for roles that a policy answers")
    if ours and read_stack_info(paths) is None:
        return Check(name, True, f"`offing up` starts one for {get_policy_dir(settings)}")
    key = settings.engine_key.get_secret_value() if settings.engine_key else ""
    try:
        return Check(name, True, probe(url, key))
    except Exception as error:  # as for the servers above
        remedy = (
            "See its log."
            if ours
            else f"Start `offing engine serve` at this address, or correct or unset {ENGINE_URL_VARIABLE}."
        )
        return Check(name, False, str(error), remedy)


def inspect_retrieval_models(settings: Settings) -> tuple[Check, Check]:
    """Call the embedding model and the reranker once. They share one event loop, as litellm expects."""

    async def inspect() -> tuple[Check, Check]:
        return await _inspect_embedder(settings), await _inspect_reranker(settings)

    return asyncio.run(inspect())


async def _inspect_embedder(settings: Settings) -> Check:
    """Report the dimensions of the embedding model, after embedding one word. None is needed."""
    name = "Embedding model"
    try:
        embedder = open_embedder(settings, _build_environment(settings))
        if embedder is None:
            return Check(name, True, "not configured, so documents are searched by words alone")
        return Check(name, True, await describe_embedder(embedder))
    except OffingError as error:
        remedy = "Until it responds, documents are searched by words alone. Unset OFFING_EMBEDDING_MODEL to use none."
        return Check(name, False, str(error), remedy)


async def _inspect_reranker(settings: Settings) -> Check:
    """Report scores of the reranker for two texts. None is needed."""
    name = "Reranker"
    try:
        reranker = open_reranker(settings, _build_environment(settings))
        if reranker is None:
            return Check(name, True, "not configured")
        return Check(name, True, await describe_reranker(reranker, settings.rerank_model))
    except OffingError as error:
        remedy = "Until it responds, results keep the order of the search. Unset OFFING_RERANK_MODEL to use none."
        return Check(name, False, str(error), remedy)


def _inspect_postgres() -> Check:
    installation = next(postgres_installations(), None)
    if installation is None:
        return Check("Postgres", False, "none found", "Run `make setup`, or set DATABASE_URL.")
    return Check("Postgres", True, f"{installation.major} in {installation.folder}")


def _inspect_keyvalue() -> Check:
    program = next(keyvalue_installations(), None)
    if program is None:
        return Check("Valkey", False, "none found", "Run `make setup`, or set REDIS_URL.")
    return Check("Valkey", True, str(program))


def inspect_embedded_servers(settings: Settings) -> Check:
    """Start the embedded servers on an empty folder and stop them, or report that they run already."""
    if read_stack_info(locate_data_directory(settings.home)) is not None:
        return Check("Embedded servers", True, "running")
    with tempfile.TemporaryDirectory(prefix="offing-doctor-", ignore_cleanup_errors=True) as folder:
        try:
            with open_servers(settings.model_copy(update={"home": Path(folder)}), durable=False):
                return Check("Embedded servers", True, "start and stop correctly")
        except OffingError as error:
            return Check("Embedded servers", False, str(error), "See above, or set DATABASE_URL and REDIS_URL.")


def _inspect_server(name: str, url: str, probe: Callable[[str], str]) -> Check:
    try:
        return Check(name, True, probe(url))
    except Exception as error:  # report any error, because the user asked about it
        reason = str(error).replace(url, name).strip() or type(error).__name__
        return Check(name, False, reason, f"Start that server, or correct or unset {name}.")


def _nearest_existing(folder: Path) -> Path:
    """Return `folder` or its closest existing ancestor."""
    return next(path for path in (folder, *folder.parents) if path.exists())
