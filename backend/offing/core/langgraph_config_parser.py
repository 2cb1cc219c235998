"""Parser of `langgraph.json` in its published format.

What Offing does not do is said by a `ConfigNotice`. A key whose omission would weaken the protection of the project's
data is an error. Values of `env` are in no message.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.langgraph_config import (
    CONFIG_FILE,
    ConfigNotice,
    GraphDefinition,
    HttpSettings,
    LangGraphConfig,
    ObjectReference,
    StoreIndex,
    StoreTtl,
    ThreadTtl,
    ThreadTtlStrategy,
)

JAVASCRIPT_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")

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
    top = _Reader(file, "", document)
    notices = [*_list_unused_keys(top)]
    graphs = tuple(_parse_graphs(top, notices))
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
        http=_parse_http(top, notices),
        python_version=_parse_python_version(top),
        notices=tuple(notices),
    )


def parse_reference(text: str, field: str) -> ObjectReference:
    """Parse `path.py:variable` or `module:variable`. Raises InvalidInput for `field`."""
    location, separator, variable = text.rpartition(":")
    if not separator or not location or not variable.replace(".", "").isidentifier():
        raise InvalidInput(
            field, f"{text!r} is not a reference", "Use path/to/file.py:variable, or package.module:variable."
        )
    return ObjectReference(location, variable)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A mapping of the file with its place, for errors."""

    file: str
    prefix: str
    document: Any

    def __post_init__(self) -> None:
        if not isinstance(self.document, Mapping):
            raise InvalidInput(self.name(), f"is {_describe(self.document)}, not an object", "Use {…}.")

    def name(self, key: str = "") -> str:
        """Return the name of a key in errors."""
        path = ".".join(part for part in (self.prefix, key) if part)
        return f"{self.file}: {path}" if path else self.file

    def path(self, key: str) -> str:
        return f"{self.prefix}.{key}" if self.prefix else key

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(map(str, cast(Mapping[Any, Any], self.document)))

    def get(self, key: str) -> Any:
        return cast(Mapping[str, Any], self.document).get(key)

    def read(self, key: str, kind: type, described: str) -> Any:
        """Return the value of a key, or `None` if it is absent or null. Raises InvalidInput for another type."""
        value = self.get(key)
        is_number_like = isinstance(value, bool) and kind is not bool
        if value is None or (isinstance(value, kind) and not is_number_like):
            return value
        raise InvalidInput(self.name(key), f"is {_describe(value)}, not {described}", "Correct or remove it.")

    def text(self, key: str) -> str:
        return self.read(key, str, "text") or ""

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.read(key, bool, "true or false")
        return default if value is None else value

    def whole_number(self, key: str) -> int | None:
        return self.read(key, int, "a whole number")

    def minutes(self, key: str) -> float | None:
        value = self.read(key, int | float, "a number of minutes")  # type: ignore[arg-type]
        if value is not None and value <= 0:
            raise InvalidInput(self.name(key), "is not more than 0 minutes", "Use a positive number, or remove it.")
        return value

    def inner(self, key: str) -> "_Reader | None":
        """Return the object under a key, or `None` if it is absent or null."""
        value = self.get(key)
        return None if value is None else _Reader(self.file, self.path(key), value)

    def texts(self, key: str) -> tuple[str, ...]:
        values: list[Any] = self.read(key, list, "a list of texts") or []
        for one in values:
            if not isinstance(one, str):
                raise InvalidInput(self.name(key), f"contains {_describe(one)}, not only texts", "Correct it.")
        return tuple(values)

    def unknown(self, *known: str) -> Iterator[ConfigNotice]:
        """Yield a notice for each key that is not known."""
        for key in self.keys:
            if key not in known:
                yield ConfigNotice(self.path(key), "This key is not known. It has no effect.")


def _describe(value: object) -> str:
    names = {"dict": "an object", "list": "a list", "str": "a text", "bool": "a truth value", "NoneType": "null"}
    return names.get(type(value).__name__, "a number")


_READ_KEYS = frozenset(
    {"auth", "checkpointer", "dependencies", "env", "graphs", "http", "python_version", "source", "store"}
)


def _list_unused_keys(top: _Reader) -> Iterator[ConfigNotice]:
    if top.get("encryption") is not None:
        raise InvalidInput(
            top.name("encryption"),
            "encryption handlers of a project are not supported, and its data would be stored without them",
            "Remove the key if the data may be stored unchanged, or use an encrypted disk.",
        )
    for key in top.keys:
        if key in IMAGE_KEYS:
            yield ConfigNotice(key, "It describes a container image. Offing builds none and ignores it.")
        elif key == "ui":
            yield ConfigNotice(key, "Interface components of a project are not served.")
        elif key == "webhooks":
            yield ConfigNotice(key, "Offing's own rules for addresses of webhooks apply instead.")
        elif key not in _READ_KEYS | DESCRIPTIVE_KEYS | {"encryption"}:
            yield ConfigNotice(key, "This key is not known. It has no effect.")


def _parse_graphs(top: _Reader, notices: list[ConfigNotice]) -> Iterator[GraphDefinition]:
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


def _parse_graph(graphs: _Reader, name: str, notices: list[ConfigNotice]) -> GraphDefinition | None:
    value, description, key = graphs.get(name), "", graphs.path(name)
    if isinstance(value, Mapping):
        inner = _Reader(graphs.file, key, value)
        notices.extend(inner.unknown("path", "description"))
        value, description = inner.text("path"), inner.text("description")
    if not isinstance(value, str) or not value:
        raise InvalidInput(graphs.name(name), "names no object", 'Use "./path/to/file.py:variable".')
    reference = parse_reference(value, graphs.name(name))
    if reference.location.endswith(JAVASCRIPT_SUFFIXES):
        notices.append(ConfigNotice(key, f"{reference.location} is JavaScript. This graph is not served."))
        return None
    return GraphDefinition(name, reference, description)


def _split_dependencies(top: _Reader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = top.texts("dependencies")
    local = tuple(one for one in named if one.startswith((".", "/")) or ("/" in one and not _is_requirement(one)))
    return local, tuple(one for one in named if one not in local)


def _is_requirement(text: str) -> bool:
    return "://" in text or bool(_REQUIREMENT.match(text))


def _parse_source(top: _Reader) -> tuple[str, ...]:
    """Return the folder of a project that is described by `source` instead of `dependencies`."""
    source = top.inner("source")
    if source is None:
        return ()
    if source.text("kind") != "uv":
        raise InvalidInput(source.name("kind"), f"{source.get('kind')!r} is not known", "Use uv, or dependencies.")
    return (".",)


def _parse_env(top: _Reader) -> tuple[str, Mapping[str, str]]:
    value = top.get("env")
    if value is None or isinstance(value, str):
        return value or "", {}
    if not isinstance(value, Mapping):
        raise InvalidInput(top.name("env"), "is neither a file nor an object", 'Use ".env" or {"NAME": "value"}.')
    variables = cast(Mapping[Any, Any], value)
    for name, content in variables.items():
        if not isinstance(content, str):
            raise InvalidInput(top.name(f"env.{name}"), f"is {_describe(content)}, not a text", "Put it in quotes.")
    return "", {str(name): str(content) for name, content in variables.items()}


def _parse_auth(top: _Reader, notices: list[ConfigNotice]) -> ObjectReference | None:
    auth = top.inner("auth")
    if auth is None:
        return None
    notices.extend(auth.unknown("path", "openapi", "disable_studio_auth", "cache"))
    for key, effect in (
        ("cache", "The handler is called for every request."),
        ("disable_studio_auth", "Studio is authenticated by the handler, as every client is."),
    ):
        if auth.get(key) is not None:
            notices.append(ConfigNotice(auth.path(key), effect))
    if not (path := auth.text("path")):
        raise InvalidInput(auth.name("path"), "names no Auth object", 'Use "./auth.py:auth", or remove `auth`.')
    return parse_reference(path, auth.name("path"))


def _parse_store_index(top: _Reader, notices: list[ConfigNotice]) -> StoreIndex | None:
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


def _parse_store_ttl(top: _Reader, notices: list[ConfigNotice]) -> StoreTtl | None:
    store = top.inner("store")
    if store is None or (ttl := store.inner("ttl")) is None:
        return None
    notices.extend(ttl.unknown("default_ttl", "refresh_on_read", "sweep_interval_minutes"))
    return StoreTtl(
        ttl.minutes("default_ttl"), ttl.flag("refresh_on_read", True), ttl.whole_number("sweep_interval_minutes")
    )


def _parse_checkpointer(top: _Reader, notices: list[ConfigNotice]) -> ThreadTtl | None:
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
    strategy = ttl.text("strategy") or ThreadTtlStrategy.DELETE
    if strategy not in set(ThreadTtlStrategy):
        remedy = f"Use one of: {', '.join(ThreadTtlStrategy)}."
        raise InvalidInput(ttl.name("strategy"), f"{strategy!r} is not known", remedy)
    return ThreadTtl(ttl.minutes("default_ttl"), ThreadTtlStrategy(strategy))


ROUTE_GROUPS = ("a2a", "assistants", "mcp", "meta", "runs", "store", "threads", "ui", "webhooks")
"""Groups of routes that a project can turn off by `disable_<group>`."""


def _parse_http(top: _Reader, notices: list[ConfigNotice]) -> HttpSettings:
    http = top.inner("http")
    if http is None:
        return HttpSettings()
    switches = tuple(f"disable_{group}" for group in ROUTE_GROUPS)
    unused = ("configurable_headers", "logging_headers", "middleware_order")
    notices.extend(http.unknown("app", "cors", "mount_prefix", "enable_custom_route_auth", *switches, *unused))
    notices += [ConfigNotice(http.path(key), "It has no effect.") for key in unused if http.get(key) is not None]
    app, cors = http.text("app"), http.inner("cors")
    return HttpSettings(
        parse_reference(app, http.name("app")) if app else None,
        dict(cors.document) if cors else {},
        frozenset(group for group in ROUTE_GROUPS if http.flag(f"disable_{group}")),
        http.text("mount_prefix"),
        http.flag("enable_custom_route_auth"),
    )


def _parse_python_version(top: _Reader) -> str:
    version = top.text("python_version")
    if version and not re.fullmatch(r"3\.\d{1,2}", version):
        raise InvalidInput(top.name("python_version"), f"{version!r} is not a version", "Use a text such as 3.12.")
    return version
