"""Environments: where an agent acts in place of the document library, as packages register them.

An environment has tools with their rules in the default tool policy, generates tasks with known answers, and may
add rule-based roles and a prompt format.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from offing.registry import Group, Registry
from offing.sdk.graph import Graph
from offing.sdk.prompt_format import PromptFormat
from offing.sdk.role import Role, RuleFunction
from offing.sdk.type_vars import Input, Output
from offing.tools.platform_tool import PlatformTool

DEFAULT_ENVIRONMENT = "world"
"""The environment of a spec without `NAME:`."""


@dataclass(frozen=True, slots=True)
class TaskSample:
    """Which tasks of an environment to generate."""

    spec: str
    """`NAME:SPEC`, or `SPEC` for the environment `world`, such as `train-12@500`."""
    count: int
    hops: tuple[int, int] = (1, 4)
    """Minimum and maximum number of tool calls that a task needs."""
    kinds: tuple[str, ...] | None = None
    """Kinds of tasks, as the environment names them. `None` means all."""
    seed: int = 0
    compositions: str = ""
    """Part of the tasks by what they combine, as the environment names it, so that a part can be left out of training.
    Empty means all.
    """


@dataclass(frozen=True, slots=True)
class RoleExtension(Generic[Input, Output]):
    """What an environment adds to every role with an input type."""

    input: type[Input]
    rules: Mapping[str, RuleFunction[Input, Output]] = field(default_factory=dict[str, Any])
    """Rules for the engine `rules`, by name."""
    prompt_formats: tuple[PromptFormat[Input, Output], ...] = ()


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment. Packages register it in the entry point group `offing.environments`."""

    name: str
    tools: tuple[PlatformTool, ...]
    """The tools of its runs, in the order of prompts. They find the spec in `ToolScope.environment`."""
    generate_tasks: Callable[[TaskSample], Iterable[Mapping[str, Any]]]
    """Generates tasks as JSON objects, in the format of a task file. It is CPU-bound and may raise InvalidInput."""
    roles: tuple[RoleExtension[Any, Any], ...] = ()
    version: str = ""
    """Content hash of what `roles` depend on. It is part of the version of each graph with such a role."""
    vocabulary: Sequence[str] = ()
    """Words of its prompt format, for the tokenizer of small policies. Empty means that it has no such format."""


ENVIRONMENTS: Registry[Environment] = Registry(
    Group.ENVIRONMENTS,
    "an environment",
    accepts=lambda value: isinstance(value, Environment),
    remedy="Name an offing.tools.environment.Environment.",
    name_of=lambda environment: environment.name,
)
"""The environments by name."""


def get_environment(spec: str) -> Environment:
    """Return the environment of `NAME:SPEC`, or of `SPEC` for the default one. Raises InvalidInput."""
    name, _, _ = qualify_spec(spec).partition(":")
    return ENVIRONMENTS.get_named(name, "environment")


def qualify_spec(spec: str) -> str:
    """Return `NAME:SPEC` with the name of the environment."""
    return spec if ":" in spec else f"{DEFAULT_ENVIRONMENT}:{spec}"


def find_spec(text: str) -> str | None:
    """Return the spec if `text` is `NAME:SPEC` of an installed environment. `None` means that it is not."""
    name, colon, spec = text.partition(":")
    if not colon or name not in ENVIRONMENTS:
        return None
    return spec if name == DEFAULT_ENVIRONMENT else text


def list_environment_tools() -> tuple[PlatformTool, ...]:
    """Return the tools of all environments."""
    return tuple(tool for environment in ENVIRONMENTS.values() for tool in environment.tools)


def extend_role(role: Role[Input, Output]) -> Role[Input, Output]:
    """Return the role with the rules and prompt formats of all environments. Those of the role have priority."""
    rules, formats = dict[str, Any](), dict[str, Any]()
    for _, extension in _iter_extensions(role):
        rules |= extension.rules
        formats |= {one.name: one for one in extension.prompt_formats}
    if not rules and not formats:
        return role
    own = {one.name for one in role.prompt_formats}
    added = tuple(one for name, one in formats.items() if name not in own)
    return replace(role, rules={**rules, **role.rules}, prompt_formats=(*role.prompt_formats, *added))


def extend_graph(graph: Graph) -> Graph:
    """Return the graph with extended roles, and with a version that covers what extends them."""
    used = sorted({one.version for role in graph.roles for one, _ in _iter_extensions(role)})
    if not used:
        return graph
    version = hashlib.sha256("\0".join((graph.version, *used)).encode()).hexdigest()
    return replace(graph, roles=tuple(map(extend_role, graph.roles)), version=version)


def _iter_extensions(role: Role[Any, Any]) -> Iterator[tuple[Environment, RoleExtension[Any, Any]]]:
    for environment in ENVIRONMENTS.values():
        yield from ((environment, one) for one in environment.roles if one.input is role.input)
