"""The operator's file of MCP servers: which there are, which of their tools may be used, and under what conditions.

The only home of that file's form and of whom it is read from. Knows no server's answer. A secret never stands in the
file: it names the environment variable that holds one.
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
from offing.core.policy import Condition
from offing.core.tool import Effect
from offing.telemetry.redaction import secret_values
from offing.web.url import Target, target_of

VARIABLE = "OFFING_MCP"

STARTED = frozenset(("args", "command", "cwd", "env", "stdio", "transport", "type"))
"""What other programs' files say of a server that is started as a program."""
REMEDY = "Correct it, or take it out; docs/mcp.md has an example."
LARGEST_FILE = 1_000_000

_PROBE = "0123456789abcdef"


def _telling(name: str) -> str:
    """A name that the redaction of logs knows for a secret's, so that its value cannot slip through."""
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{2,99}", name) or _PROBE not in secret_values({name: _PROBE}):
        raise ValueError("this must be the name of an environment variable that ends in _KEY, _TOKEN or _SECRET")
    return name


SecretName = Annotated[str, AfterValidator(_telling)]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
QueryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,23}$")]
"""Without an underscore, so that `mcp_SERVER_TOOL` is one server's and one tool's alone."""


class AllowedTool(BaseModel):
    """A tool that runs may use, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    effect: Effect = Effect.AT_MOST_ONCE
    """Whether it may be called again after a loss; `pure` only where the operator says so."""
    timeout: float = Field(default=60.0, gt=0, le=600)
    """Seconds."""
    most: int = Field(default=256, ge=0, le=4_096)
    """Calls in one run."""
    when: tuple[Condition, ...] = Field(default=(), max_length=50)
    """Conditions on its arguments, as in a tool policy."""


class Server(BaseModel):
    """A server that may be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    private: bool = False
    """Whether it may lie outside the public internet, or be asked without TLS."""
    bearer: SecretName | None = None
    """Environment variable whose value is sent as a bearer token."""
    headers: dict[HeaderName, SecretName] = Field(default={}, max_length=20)
    """Environment variables whose values are sent as headers."""
    query: dict[QueryName, SecretName] = Field(default={}, max_length=20)
    """Environment variables whose values are sent in the address."""
    tools: dict[ToolName, AllowedTool] = Field(default={}, max_length=200)
    """Those that runs may use. Empty: none."""

    @model_validator(mode="before")
    @classmethod
    def _over_http(cls, value: Any) -> Any:
        started = sorted(STARTED & set(value)) if isinstance(value, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        if started:
            raise ValueError(f"{started[0]}: a server is never started as a program; give the url of one to be asked")
        return value  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _reachable(self) -> "Server":
        target = target_of(self.url)
        if not isinstance(target, Target):
            raise ValueError(f"url: {target.problem}")
        if "#" in self.url:
            raise ValueError("url: it must not have a fragment")
        if target.scheme != "https" and not self.private:
            raise ValueError("url: it must begin with https://, unless the server is marked private")
        return self

    @property
    def target(self) -> Target:
        target = target_of(self.url)
        assert isinstance(target, Target)
        return target


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: dict[ServerName, Server] = Field(default={}, max_length=100)


def servers_in(text: str) -> dict[str, Server]:
    """Raises InvalidInput that names the first entry that cannot be used."""
    try:
        return _File.model_validate(tomllib.loads(text)).servers
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(VARIABLE, f"the file is not TOML: {error}", REMEDY) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise InvalidInput(VARIABLE, f"{place}: {first['msg'].removeprefix('Value error, ')}", REMEDY) from None


def with_server(
    text: str, name: str, url: str, *, tools: Sequence[str] = (), bearer: str | None = None, private: bool = False
) -> str:
    """The file's text with one more server. Raises InvalidInput where it has that server, or could not use it."""
    if name in servers_in(text):
        raise InvalidInput("NAME", f"there is a server {name} already", "Choose another name, or edit the file.")
    lines = [f"[servers.{name}]", f"url = {_quoted(url)}"]
    lines += ["private = true"] if private else []
    lines += [f"bearer = {_quoted(bearer)}"] if bearer else []
    lines += ["", f"[servers.{name}.tools]", *(f"{_quoted(tool)} = {{}}" for tool in tools)]
    fresh = "\n".join([*([text.rstrip(), ""] if text.strip() else []), *lines, ""])
    servers_in(fresh)
    return fresh


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def read_servers(path: Path) -> dict[str, Server]:
    """The file's servers. Raises InvalidInput where it cannot be read, or where others than its reader may write it."""
    return servers_in(own_text(path))


def own_text(path: Path) -> str:
    """A file that nobody but its reader or root may write. Raises InvalidInput for any other."""
    try:
        with path.open("rb") as file:
            problem = _problem(os.fstat(file.fileno()))
            if problem:
                raise InvalidInput(VARIABLE, f"{path} {problem}", "Mend it with chown and `chmod go-w`.")
            return file.read(LARGEST_FILE).decode()
    except OSError as error:
        raise InvalidInput(VARIABLE, f"{path} cannot be read ({error.strerror})", "Name a file that can.") from None
    except UnicodeDecodeError:
        raise InvalidInput(VARIABLE, f"{path} is not UTF-8 text", REMEDY) from None


def _problem(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    if found.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return "is too large" if found.st_size >= LARGEST_FILE else ""


def secret_names(server: Server) -> Mapping[str, str]:
    """Where each secret goes (`header NAME`, `query NAME`), by environment variable."""
    found = {name: f"header {header}" for header, name in server.headers.items()}
    found |= {name: f"query {part}" for part, name in server.query.items()}
    return found | ({server.bearer: "bearer token"} if server.bearer else {})
