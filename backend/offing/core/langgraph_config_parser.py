"""Parser of `langgraph.json` in its published format.

What Offing does not do is said by a `ConfigNotice`. A key whose omission would weaken the protection of the project's
data is an error. Values of `env` are in no message.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import (
    CONFIG_FILE,
    ConfigNotice,
    GraphDefinition,
    LangGraphConfig,
    ObjectReference,
    StoreIndex,
    StoreTtl,
    ThreadTtl,
    ThreadTtlStrategy,
)
from offing.core.langgraph_config_reader import JAVASCRIPT_SUFFIXES, ConfigReader, describe, parse_reference
from offing.core.langgraph_http_parser import parse_http, parse_webhooks

IMAGE_KEYS = frozenset(
    {
        "_INTERNAL_docker_tag",
        "api_version",
        "base_image",
        "dockerfile_lines",
        "image_distro",
        "keep_pkg_tools",
        "node_version",
        "pip_config_file",
        "pip_installer",
    }
)
"""Keys that describe how a container image is built."""

DESCRIPTIVE_KEYS = frozenset({"$schema", "name", "version"})
"""Keys without an effect on the server."""

_REQUIREMENT = re.compile(r"^[\w.-]+(\[[\w,. -]*\])?\s*([<>=!~@;].*)?$")


def parse_langgraph_config(document: Any, file: str = CONFIG_FILE) -> LangGraphConfig:
    """Parse the decoded JSON of a configuration file. `file` is its name in errors.

    Raises InvalidInput that names the key. No error or notice contains a value of `env`.
    """
    top = ConfigReader(file, "", document)
    notices = [*_list_unused_keys(top)]
    graphs = tuple(_parse_graphs(top, notices))
    http = parse_http(top, notices)
    local, packages = _split_dependencies(top)
    env_file, env = _parse_env(top)
    return LangGraphConfig(
        graphs=graphs,
        local_dependencies=(*local, *_parse_source(top)),
        package_dependencies=packages,
        env_file=env_file,
        env=env,
        auth=_parse_auth(top, notices),
        store_index=_parse_store_index(top, notices),
        store_ttl=_parse_store_ttl(top, notices),
        thread_ttl=_parse_checkpointer(top, notices),
        http=http,
        webhooks=parse_webhooks(top, notices, is_disabled="webhooks" in http.disabled_routes),
        python_version=_parse_python_version(top),
        notices=tuple(notices),
    )


_READ_KEYS = frozenset(
    {"auth", "checkpointer", "dependencies", "env", "graphs", "http", "python_version", "source", "store", "webhooks"}
)


def _list_unused_keys(top: ConfigReader) -> Iterator[ConfigNotice]:
    if top.get("encryption") is not None:
        raise InvalidInput(
            top.name("encryption"),
            "encryption handlers of a project are not supported, and its data would be stored without them",
            "Remove the key if the data may be stored unchanged, or use an encrypted disk.",
        )
    for key in top.keys:
        if key in IMAGE_KEYS:
            yield ConfigNotice(key, "It describes a container image. Offing builds none and ignores it.")
        elif key in ("ui", "ui_config"):
            yield ConfigNotice(key, "Interface components of a project are not served.")
        elif key not in _READ_KEYS | DESCRIPTIVE_KEYS | {"encryption"}:
            yield ConfigNotice(key, "This key is not known. It has no effect.")


def _parse_graphs(top: ConfigReader, notices: list[ConfigNotice]) -> Iterator[GraphDefinition]:
    graphs = top.inner("graphs")
    if graphs is None or not graphs.keys:
        raise InvalidInput(top.name("graphs"), "no graph is named", 'Add "graphs": {"agent": "./agent.py:graph"}.')
    is_any_served = False
    for name in graphs.keys:
        definition = _parse_graph(graphs, name, notices)
        if definition is not None:
            is_any_served = True
            yield definition
    if not is_any_served:
        raise InvalidInput(
            top.name("graphs"), "all graphs are written in JavaScript", "Only Python graphs can be served."
        )


def _parse_graph(graphs: ConfigReader, name: str, notices: list[ConfigNotice]) -> GraphDefinition | None:
    value, description, key = graphs.get(name), "", graphs.path(name)
    if isinstance(value, Mapping):
        inner = ConfigReader(graphs.file, key, value)
        notices.extend(inner.unknown("path", "description"))
        value, description = inner.text("path"), inner.text("description")
    if not isinstance(value, str) or not value:
        raise InvalidInput(graphs.name(name), "names no object", 'Use "./path/to/file.py:variable".')
    reference = parse_reference(value, graphs.name(name))
    if reference.location.endswith(JAVASCRIPT_SUFFIXES):
        notices.append(ConfigNotice(key, f"{reference.location} is JavaScript. This graph is not served."))
        return None
    return GraphDefinition(name, reference, description)


def _split_dependencies(top: ConfigReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = top.texts("dependencies")
    local = tuple(one for one in named if one.startswith((".", "/")) or ("/" in one and not _is_requirement(one)))
    return local, tuple(one for one in named if one not in local)


def _is_requirement(text: str) -> bool:
    return "://" in text or bool(_REQUIREMENT.match(text))


def _parse_source(top: ConfigReader) -> tuple[str, ...]:
    """Return the folder of a project that is described by `source` instead of `dependencies`."""
    source = top.inner("source")
    if source is None:
        return ()
    if source.text("kind") != "uv":
        raise InvalidInput(source.name("kind"), f"{source.get('kind')!r} is not known", "Use uv, or dependencies.")
    return (".",)


def _parse_env(top: ConfigReader) -> tuple[str, Mapping[str, str]]:
    value = top.get("env")
    if value is None or isinstance(value, str):
        return value or "", {}
    if not isinstance(value, Mapping):
        raise InvalidInput(top.name("env"), "is neither a file nor an object", 'Use ".env" or {"NAME": "value"}.')
    variables = cast(Mapping[Any, Any], value)
    for name, content in variables.items():
        if not isinstance(content, str):
            raise InvalidInput(top.name(f"env.{name}"), f"is {describe(content)}, not a text", "Put it in quotes.")
    return "", {str(name): str(content) for name, content in variables.items()}


def _parse_auth(top: ConfigReader, notices: list[ConfigNotice]) -> ObjectReference | None:
    auth = top.inner("auth")
    if auth is None:
        return None
    notices.extend(auth.unknown("path", "openapi", "disable_studio_auth", "cache"))
    for key, effect in (
        ("cache", "The handler is called for every request."),
        ("openapi", "LangGraph's server API has no OpenAPI document here."),
        ("disable_studio_auth", "Studio is authenticated by the handler, as every client is."),
    ):
        if auth.get(key) is not None:
            notices.append(ConfigNotice(auth.path(key), effect))
    if not (path := auth.text("path")):
        raise InvalidInput(auth.name("path"), "names no Auth object", 'Use "./auth.py:auth", or remove `auth`.')
    return parse_reference(path, auth.name("path"))


def _parse_store_index(top: ConfigReader, notices: list[ConfigNotice]) -> StoreIndex | None:
    store = top.inner("store")
    if store is None:
        return None
    notices.extend(store.unknown("index", "ttl"))
    if (index := store.inner("index")) is None:
        return None
    notices.extend(index.unknown("dims", "embed", "fields"))
    dims, embed = index.whole_number("dims"), index.text("embed")
    if not dims or dims < 1:
        raise InvalidInput(index.name("dims"), "is not a number of dimensions", "Use the length of the vectors.")
    if not embed:
        raise InvalidInput(index.name("embed"), "names no embedding model", 'Use "provider:model" or a function.')
    return StoreIndex(dims, embed, index.texts("fields"))


def _parse_store_ttl(top: ConfigReader, notices: list[ConfigNotice]) -> StoreTtl | None:
    store = top.inner("store")
    if store is None or (ttl := store.inner("ttl")) is None:
        return None
    notices.extend(ttl.unknown("default_ttl", "refresh_on_read", "sweep_interval_minutes"))
    notices += _list_sweep_notices(ttl)
    return StoreTtl(
        ttl.minutes("default_ttl"), ttl.flag("refresh_on_read", True), ttl.whole_number("sweep_interval_minutes")
    )


def _parse_checkpointer(top: ConfigReader, notices: list[ConfigNotice]) -> ThreadTtl | None:
    checkpointer = top.inner("checkpointer")
    if checkpointer is None:
        return None
    notices.extend(checkpointer.unknown("path", "serde", "ttl"))
    for key, effect in (
        ("path", "Offing's checkpointer is used instead."),
        ("serde", "Stored states contain plain data and the classes of the graph's state. Nothing is unpickled."),
    ):
        if checkpointer.get(key) is not None:
            notices.append(ConfigNotice(checkpointer.path(key), effect))
    if (ttl := checkpointer.inner("ttl")) is None:
        return None
    notices.extend(ttl.unknown("default_ttl", "strategy", "sweep_interval_minutes", "sweep_limit"))
    notices += _list_sweep_notices(ttl)
    strategy = ttl.text("strategy") or ThreadTtlStrategy.DELETE
    if strategy not in set(ThreadTtlStrategy):
        remedy = f"Use one of: {', '.join(ThreadTtlStrategy)}."
        raise InvalidInput(ttl.name("strategy"), f"{strategy!r} is not known", remedy)
    return ThreadTtl(ttl.minutes("default_ttl"), ThreadTtlStrategy(strategy))


def _list_sweep_notices(ttl: ConfigReader) -> Iterator[ConfigNotice]:
    for key in ("sweep_interval_minutes", "sweep_limit"):
        if ttl.get(key) is not None:
            yield ConfigNotice(ttl.path(key), "Expired data is deleted at Offing's own interval.")


def _parse_python_version(top: ConfigReader) -> str:
    version = top.text("python_version")
    if version and not re.fullmatch(r"3\.\d{1,2}", version):
        raise InvalidInput(top.name("python_version"), f"{version!r} is not a version", "Use a text such as 3.12.")
    return version
