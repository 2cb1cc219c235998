"""What Offing needs on this machine, one check after another, each with its remedy.

Checks are values; how they are shown is the caller's. It reads names of provider keys, never their values.
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

from offing.core.errors import OffingError
from offing.local.datadir import layout, read_note
from offing.local.environment import server_environment
from offing.local.keyvalue import installations as keyvalue_installations
from offing.local.page import free_port
from offing.local.policy import has_policies, policies_folder, with_engine
from offing.local.postgres import installations as postgres_installations
from offing.local.servers import local_servers
from offing.models.credentials import ENGINE_URL
from offing.models.discover import servers_here
from offing.resources import web_dir
from offing.services import code
from offing.settings import Settings

OLDEST_PYTHON = (3, 11)
OLDEST_NODE = 20
LEAST_DISK_GB = 2.0
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
"""Variables that litellm reads; the common ones, to tell a person what it will find."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `remedy` None: nothing to do."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Probes:
    """How to ask a server from outside whether it answers: what it is, or an exception that says why not."""

    database: Callable[[str], str]
    redis: Callable[[str], str]
    engine: Callable[[str, str], str]
    """The policy engine's address and key."""


def examine(settings: Settings, probes: Probes) -> Iterator[Check]:
    """Every check in turn, as soon as it is known; some take a second."""
    yield python()
    yield disk(settings.home)
    yield home(settings.home)
    yield port(settings)
    yield page()
    if web_dir() is None:
        yield node()
    yield from _servers(settings, probes)
    yield provider_keys(os.environ)
    yield model_servers({**os.environ, "OFFING_HOME": str(settings.home)})
    yield policy_engine(settings, probes.engine)
    yield sandbox(settings)


def _servers(settings: Settings, probes: Probes) -> Iterator[Check]:
    if settings.database_url is None:
        yield _postgres()
    else:
        yield _answers("DATABASE_URL", settings.database_url.get_secret_value(), probes.database)
    if settings.redis_url is None:
        yield _keyvalue()
    else:
        yield _answers("REDIS_URL", settings.redis_url.get_secret_value(), probes.redis)
    if settings.database_url is None or settings.redis_url is None:
        yield embedded_servers_start(settings)


def python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    return Check("Python", ok, found, None if ok else "Install Python 3.11 or later and run `make setup PYTHON=path`.")


def node() -> Check:
    """Asked only while the page has not been built."""
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None:
        return Check("Node", False, "node or npm is not there", "Install node 20 or later, which brings npm.")
    environment = server_environment()
    version = subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    ok = int(version.lstrip("v").split(".")[0]) >= OLDEST_NODE
    return Check("Node", ok, version, None if ok else "Install node 20 or later.")


def page() -> Check:
    built = web_dir()
    if built is None:
        return Check("Page", False, "not built; the API works without it", "Run `make setup`.")
    return Check("Page", True, str(built))


def disk(folder: Path) -> Check:
    gb = shutil.disk_usage(_nearest(folder)).free / 1e9
    ok = gb >= LEAST_DISK_GB
    remedy = None if ok else f"Free {LEAST_DISK_GB:g} GB there, or set OFFING_HOME to another disk."
    return Check("Disk", ok, f"{gb:.1f} GB free for {folder}", remedy)


def home(folder: Path) -> Check:
    """The data folder is ours, writable, and closed to others; or can be made."""
    if not folder.exists():
        ok = os.access(_nearest(folder), os.W_OK | os.X_OK)
        return Check("Home", ok, f"{folder} will be made", None if ok else "Set OFFING_HOME to a folder you may write.")
    found = folder.stat()
    if found.st_uid != os.geteuid() or not os.access(folder, os.W_OK | os.X_OK):
        return Check("Home", False, f"{folder} belongs to another user", "Set OFFING_HOME to a folder of your own.")
    ok = found.st_mode & 0o066 == 0
    return Check("Home", ok, f"{folder}", None if ok else f"Others can read it: chmod 700 {folder}")


def port(settings: Settings) -> Check:
    note = read_note(layout(settings.home))
    if note is not None and note.page_url is not None:
        return Check("Port", True, f"Offing is running at {note.page_url}")
    try:
        free_port(settings.host, settings.port)
    except OffingError as error:
        return Check("Port", False, error.args[0], error.args[1])
    return Check("Port", True, f"{settings.port} on {settings.host} is free")


def provider_keys(environment: Mapping[str, str]) -> Check:
    """Names of the keys that are set. None is needed for a first result."""
    found = [name for name in PROVIDER_KEYS if environment.get(name)]
    return Check("Model providers", True, ", ".join(found) or "no key set; the extractive engine needs none")


def model_servers(environment: Mapping[str, str]) -> Check:
    """Which model servers answer on this machine, and whether runs may ask them. None is needed."""
    found = asyncio.run(servers_here(environment))
    offered = [one.offered_at for one in found if one.offered_at]
    remedy = f"To let runs ask it: offing engine accept {offered[0]}" if offered else None
    return Check("Model servers", True, "; ".join(one.note for one in found) or "none found on this machine", remedy)


def policy_engine(settings: Settings, probe: Callable[[str, str], str]) -> Check:
    """Which versions the engine of our own weights has. None is needed before something was trained."""
    name, ours = "Policy engine", not settings.engine_url
    paths = layout(settings.home)
    url = with_engine(settings, paths).engine_url
    if not url or not (settings.engine_url or has_policies(settings)):
        return Check(name, True, "none is set up; only roles that a policy answers need one")
    if ours and read_note(paths) is None:
        return Check(name, True, f"`offing up` starts one for {policies_folder(settings)}")
    key = settings.engine_key.get_secret_value() if settings.engine_key else ""
    try:
        return Check(name, True, probe(url, key))
    except Exception as error:  # as for the servers above
        remedy = (
            "Look into its log." if ours else f"Start `offing engine serve` there, or correct or unset {ENGINE_URL}."
        )
        return Check(name, False, str(error), remedy)


def sandbox(settings: Settings) -> Check:
    """What runs code here, after really trying to get out of it; some seconds. None is needed by a run without code."""
    found = asyncio.run(code.codes(settings).choice())
    refused = "; ".join(f"{name}: {why}" for name, why in found.refused.items())
    if found.sandbox is not None:
        return Check("Sandbox", True, f"{found.sandbox.name}{f' ({refused})' if refused else ''}")
    if settings.sandbox == "off":
        return Check("Sandbox", True, "turned off by OFFING_SANDBOX; no code is run")
    return Check("Sandbox", True, f"none, so no code is run: {refused}", "Install bubblewrap, or the extra sandbox.")


def _postgres() -> Check:
    found = next(postgres_installations(), None)
    if found is None:
        return Check("Postgres", False, "none found", "Run `make setup`, or set DATABASE_URL.")
    return Check("Postgres", True, f"{found.major} in {found.folder}")


def _keyvalue() -> Check:
    found = next(keyvalue_installations(), None)
    if found is None:
        return Check("Valkey", False, "none found", "Run `make setup`, or set REDIS_URL.")
    return Check("Valkey", True, str(found))


def embedded_servers_start(settings: Settings) -> Check:
    """Really starts them on an empty folder, and stops them again; or says that they run."""
    if read_note(layout(settings.home)) is not None:
        return Check("Embedded servers", True, "running")
    with tempfile.TemporaryDirectory(prefix="offing-doctor-", ignore_cleanup_errors=True) as folder:
        try:
            with local_servers(settings.model_copy(update={"home": Path(folder)}), durable=False):
                return Check("Embedded servers", True, "start and stop")
        except OffingError as error:
            return Check("Embedded servers", False, str(error), "See above, or set DATABASE_URL and REDIS_URL.")


def _answers(name: str, url: str, probe: Callable[[str], str]) -> Check:
    try:
        return Check(name, True, probe(url))
    except Exception as error:  # whatever stands in the way of an answer is what the person asked about
        why = str(error).replace(url, name).strip() or type(error).__name__
        return Check(name, False, why, f"Start that server, or correct or unset {name}.")


def _nearest(folder: Path) -> Path:
    """`folder`, or the closest folder above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
