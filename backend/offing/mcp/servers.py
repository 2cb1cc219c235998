"""Read the operator's file of MCP servers: addresses, allowed tools and their conditions.

A secret is never in the file. The file names the environment variable that holds it.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect
from offing.core.tool_policy import Condition
from offing.telemetry.redaction import find_secrets
from offing.web.url import ParsedUrl, parse_url

CONFIG_VARIABLE = "OFFING_MCP_CONFIG"

STDIO_KEYS = frozenset(("args", "command", "cwd", "env", "stdio", "transport", "type"))
"""Keys that other programs use for a server that is started as a program."""
REMEDY = "Correct or remove it. docs/mcp.md has an example."
MAX_FILE_BYTES = 1_000_000

_PROBE = "0123456789abcdef"


def _check_secret_name(name: str) -> str:
    """Return the name if log redaction recognizes it as that of a secret, so that the value is never logged.

    Raises ValueError otherwise.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{2,99}", name) or _PROBE not in find_secrets({name: _PROBE}):
        raise ValueError("must be the name of an environment variable that ends in _KEY, _TOKEN or _SECRET")
    return name


SecretName = Annotated[str, AfterValidator(_check_secret_name)]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
QueryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,23}$")]
"""Names have no underscore, so that `mcp_SERVER_TOOL` is unambiguous."""


class AllowedToolConfig(BaseModel):
    """How runs may use a tool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    effect: SideEffect = SideEffect.AT_MOST_ONCE
    """Whether a call may be repeated after a crash. Only the operator can set `pure`."""
    timeout_seconds: float = Field(default=60.0, gt=0, le=600)
    """Timeout of a call."""
    max_calls: int = Field(default=256, ge=0, le=4_096)
    """Maximum number of calls in one run."""
    when: tuple[Condition, ...] = Field(default=(), max_length=50)
    """Conditions on its arguments, as in a tool policy."""


class McpServerConfig(BaseModel):
    """An MCP server that may be called."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    private: bool = False
    """Whether it may be outside the public internet or be called without TLS."""
    bearer: SecretName | None = None
    """Environment variable whose value is sent as a bearer token."""
    headers: dict[HeaderName, SecretName] = Field(default={}, max_length=20)
    """Environment variables whose values are sent as headers."""
    query: dict[QueryName, SecretName] = Field(default={}, max_length=20)
    """Environment variables whose values are sent in the query of the address."""
    tools: dict[ToolName, AllowedToolConfig] = Field(default={}, max_length=200)
    """Tools that runs may use. Empty means none."""

    @model_validator(mode="before")
    @classmethod
    def _check_not_stdio(cls, value: Any) -> Any:
        started = sorted(STDIO_KEYS & set(value)) if isinstance(value, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        if started:
            raise ValueError(f"{started[0]}: servers are not started as programs; set the url of a running server")
        return value  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _check_url(self) -> "McpServerConfig":
        target = parse_url(self.url)
        if not isinstance(target, ParsedUrl):
            raise ValueError(f"url: {target.problem}")
        if "#" in self.url:
            raise ValueError("url: must not have a fragment")
        if target.scheme != "https" and not self.private:
            raise ValueError("url: must begin with https://, unless `private` is true")
        return self

    @property
    def parsed_url(self) -> ParsedUrl:
        target = parse_url(self.url)
        assert isinstance(target, ParsedUrl)
        return target


class _ConfigFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: dict[ServerName, McpServerConfig] = Field(default={}, max_length=100)


def parse_servers(text: str) -> dict[str, McpServerConfig]:
    """Parse the file. Raises InvalidInput with the first invalid entry."""
    try:
        return _ConfigFile.model_validate(tomllib.loads(text)).servers
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(CONFIG_VARIABLE, f"the file is not TOML: {error}", REMEDY) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise InvalidInput(CONFIG_VARIABLE, f"{field}: {first['msg'].removeprefix('Value error, ')}", REMEDY) from None


def add_server(
    text: str, name: str, url: str, *, tools: Sequence[str] = (), bearer: str | None = None, private: bool = False
) -> str:
    """Return the text of the file with one more server.

    Raises InvalidInput if the server exists or is invalid.
    """
    if name in parse_servers(text):
        raise InvalidInput("NAME", f"the server {name} already exists", "Use another name, or edit the file.")
    lines = [f"[servers.{name}]", f"url = {_quote_toml(url)}"]
    lines += ["private = true"] if private else []
    lines += [f"bearer = {_quote_toml(bearer)}"] if bearer else []
    lines += ["", f"[servers.{name}.tools]", *(f"{_quote_toml(tool)} = {{}}" for tool in tools)]
    fresh = "\n".join([*([text.rstrip(), ""] if text.strip() else []), *lines, ""])
    parse_servers(fresh)
    return fresh


def _quote_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def read_servers(path: Path) -> dict[str, McpServerConfig]:
    """Read the servers of a file. Raises InvalidInput if it cannot be read or if other users may write it."""
    return parse_servers(read_trusted_file(path))


def read_trusted_file(path: Path) -> str:
    """Read a file that only its reader or root may write. Raises InvalidInput for any other."""
    try:
        with path.open("rb") as file:
            problem = _find_file_problem(os.fstat(file.fileno()))
            if problem:
                raise InvalidInput(
                    CONFIG_VARIABLE,
                    f"{path} {problem}",
                    "Fix its owner with chown and its permissions with `chmod go-w`.",
                )
            return file.read(MAX_FILE_BYTES).decode()
    except OSError as error:
        raise InvalidInput(
            CONFIG_VARIABLE, f"{path} cannot be read ({error.strerror})", "Use a readable file."
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(CONFIG_VARIABLE, f"{path} is not UTF-8 text", REMEDY) from None


def _find_file_problem(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    if status.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "is writable by other users"
    return "is too large" if status.st_size >= MAX_FILE_BYTES else ""


def list_secret_names(server: McpServerConfig) -> Mapping[str, str]:
    """Return where each secret is sent (`header NAME`, `query NAME`), by environment variable."""
    owners = {name: f"header {header}" for header, name in server.headers.items()}
    owners |= {name: f"query {part}" for part, name in server.query.items()}
    return owners | ({server.bearer: "bearer token"} if server.bearer else {})
