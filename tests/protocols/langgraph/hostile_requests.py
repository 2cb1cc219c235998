"""Hostile requests to every route of LangGraph's server API, derived from the application's own routes.

A request is near a valid one: it has the fields that the route describes, some of which hold what they should not. The
same seed gives the same requests.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast
from urllib.parse import quote, urlencode

from fastapi.routing import iter_route_contexts
from starlette.routing import WebSocketRoute

from offing.protocols.langgraph.app import build_langgraph_app
from tests.protocols.langgraph.hostile_bodies import COMMAND, OWN_BODIES, RPC_ID
from tests.protocols.langgraph.hostile_mutations import DEEP, HostileRequest, mutate, nest

HUGE = 17 * 1024 * 1024
"""Bytes of a body that is too large."""

TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff x",
    "\u202e\u2028",
    "'; drop table app.run; --",
    "%00",
    "../../etc/passwd",
    "{{7*7}}",
    "__proto__",
    "*",
    "a.b",
    "a" * 3000,
    "é" * 300,
    "00000000-0000-0000-0000-000000000000",
    "00000000-0000-0000-0000-00000000000g",
    "-1",
    "1e999",
    "9" * 40 + "-" + "9" * 40,
    "null",
    "\r\nX-Injected: yes",
)

NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, 1e308, float("nan"), float("inf"), -float("inf"))

RPC_IDS: tuple[Any, ...] = (None, True, {}, [], [1], 0, -1, 1.5, "", "x" * 300, "a\0b", "\ud800", 2**63, 10**400, 1e308)
"""Ids of messages of JSON-RPC."""

CONTENT_TYPES = (
    "application/json",
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/x-www-form-urlencoded",
    "",
    "\x7f",
)

RAW_BODIES = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b"\0",
    b"NaN",
    b"[1,2",
    f'"{DEEP}"'.encode(),
    b"{}" * 100,
    b"true",
)

IDS = ("thread_id", "run_id", "assistant_id", "cron_id", "checkpoint_id", "thread_ids", "run_ids", "ids")
"""Names of parameters and fields that hold ids."""

KINDS = {
    "thread_ids": "thread_id",
    "run_ids": "run_id",
    "ids": "thread_id",
    "contextId": "thread_id",
    "taskId": "run_id",
}
"""What the ids of a field are of, where its name does not say so."""


@dataclass(frozen=True)
class Route:
    """A route as the API describes it."""

    method: str
    path: str
    parameters: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any] | None
    """JSON schema of the body. `None` means that the route describes none."""


def list_routes() -> tuple[list[Route], Mapping[str, Any]]:
    """Return every route of the application, and the schemas that their bodies refer to.

    Raises KeyError for a route that the application's description leaves out.
    """
    app = build_langgraph_app(cast(Any, lambda: None))
    document, routes = app.openapi(), list[Route]()
    for context in iter_route_contexts(app.routes):
        path = str(context.path)
        for method in () if isinstance(context.original_route, WebSocketRoute) else sorted(context.methods or ()):
            described = document["paths"][path][method.lower()]
            content = described.get("requestBody", {}).get("content", {})
            schema = OWN_BODIES.get((method, path)) or content.get("application/json", {}).get("schema")
            routes.append(Route(method, path, described.get("parameters", ()), schema))
    return routes, document["components"]["schemas"]


def list_socket_paths() -> list[str]:
    """Return the paths of the application that are reached over WebSocket."""
    routes = [one.original_route for one in iter_route_contexts(build_langgraph_app(cast(Any, lambda: None)).routes)]
    return [one.path for one in routes if isinstance(one, WebSocketRoute)]


@dataclass(frozen=True)
class HostileGenerator:
    """Makes requests from a seeded source of randomness."""

    random: Random
    schemas: Mapping[str, Any]
    own: Mapping[str, Sequence[str]]
    """Ids of the caller's own records, by the names of `IDS`."""
    foreign: Mapping[str, Sequence[str]]
    """Ids of another tenant's records."""

    def generate(self, routes: Sequence[Route], count: int) -> Iterator[HostileRequest]:
        """Return requests, each route in turn."""
        for number in range(count):
            yield self.build(routes[number % len(routes)])

    def build(self, route: Route) -> HostileRequest:
        """Return one request to a route."""
        path, query, headers = route.path, list[tuple[str, str]](), [("Content-Type", self._content_type())]
        for parameter in route.parameters:
            name, where = parameter["name"], parameter["in"]
            if where == "path":
                path = path.replace(f"{{{name}}}", _quote(self._id(name)))
            elif self._chance(0.6):
                value = self._text(self._value(parameter["schema"], name))
                if where == "header":
                    headers.append((name, _clean(value)))
                else:
                    query.append((name, value))
        if self._chance(0.05):
            query.append((self.random.choice(TEXTS), self.random.choice(TEXTS)))
        target = path + ("?" + urlencode(query, errors="replace") if query else "")
        request = HostileRequest(route.method, target, headers, self._body(route.body))
        return mutate(self.random, request) if self._chance(0.2) else request

    def build_socket_path(self, path: str) -> str:
        """Return the address of a WebSocket."""
        for name in IDS:
            path = path.replace(f"{{{name}}}", _quote(self._id(name)))
        return path

    def build_command(self) -> str | bytes:
        """Return a message for a WebSocket. As text it cannot hold half a surrogate pair."""
        body = (
            self.random.choice(RAW_BODIES) if self._chance(0.2) else json.dumps(self._value(COMMAND, "body")).encode()
        )
        body = nest(self.random, body)
        return body if self._chance(0.1) else body.decode("utf-8", "replace")

    def _body(self, schema: Mapping[str, Any] | None) -> bytes | None:
        if schema is None:
            return self.random.choice((None, b"", b"{}", b"\xff")) if self._chance(0.2) else None
        if self._chance(0.08):
            return nest(self.random, self.random.choice(RAW_BODIES))
        if self._chance(0.004):
            return b'{"metadata": {"a": "' + b"x" * HUGE + b'"}}'
        body: Any = self._value(schema, "body")
        if isinstance(body, dict) and self._chance(0.05):
            body[self.random.choice(TEXTS)] = self._junk()
        if isinstance(body, dict) and "jsonrpc" in body and self._chance(0.05):
            body = {name: value for name, value in cast(Any, body).items() if name != "id"}  # it wants no answer then
        return nest(self.random, json.dumps(body).encode())

    def _value(self, schema: Mapping[str, Any], name: str, depth: int = 0) -> Any:
        """Return a value of a schema, or now and then what does not belong there."""
        if self._chance(0.06):
            return self._junk()
        if name in IDS:
            several = [self._id(name) for _ in range(self.random.randint(0, 3))]
            return several if name.endswith("ids") or name == "ids" else self._id(name)
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if schema.get("title") == RPC_ID:
            return self.random.choice((*RPC_IDS, self.random.randint(0, 20), self._id("run_id")))
        if schema.get("title") == "tool":
            return self._id("assistant_id")
        if choices := schema.get("anyOf"):
            return self._value(self.random.choice(choices), name, depth)
        if "enum" in schema or "const" in schema:
            return self.random.choice(schema.get("enum") or [schema.get("const")])
        return self._by_type(schema, name, depth)

    def _by_type(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        make: Mapping[str | None, Callable[[], Any]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._array(schema, depth),
            "string": lambda: self._string(name),
            "integer": lambda: self.random.choice((0, 1, 2, 10, 1000, -1, 2**31, 2**63, schema.get("maximum", 5))),
            "number": lambda: self.random.choice((0, 0.001, 1, 5, schema.get("maximum", 5), -1)),
            "boolean": lambda: self.random.random() < 0.5,
            "null": lambda: None,
        }
        return make.get(schema.get("type"), self._free)()

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        return [self._value(schema.get("items", {}), "", depth + 1) for _ in range(self.random.randint(0, 3))]

    def _object(self, schema: Mapping[str, Any], depth: int) -> Any:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        if not properties:
            return self._free()
        required = set(schema.get("required", ()))
        chosen = [name for name in properties if name in required or self._chance(0.3 if depth < 4 else 0.05)]
        return {name: self._value(properties[name], name, depth + 1) for name in chosen}

    def _string(self, name: str) -> str:
        known = {
            "id": (self._id("run_id"),),
            "contextId": (self._id("contextId"),),
            "taskId": (self._id("taskId"),),
            "graph_id": ("trail", "chatter", "approval", "nested"),
            "schedule": ("* * * * *", "0 0 31 2 *", "*/0 * * * *", "61 * * * *", "0 0 * * 8", "@daily", "* " * 90),
            "timezone": ("UTC", "Europe/Oslo", "../../etc/passwd", "Mars/Olympus"),
            "end_time": ("2020-01-01T00:00:00", "9999-12-31T23:59:59+14:00", "0001-01-01T00:00:00-14:00", "soon"),
            "webhook": (
                "http://127.0.0.1/",
                "https://example.com/x",
                "file:///etc/passwd",
                "http://[::1",
                "https://\0",
            ),
            "stream_mode": ("values", "messages-tuple", "events", "debug", "nothing"),
            "before": (self._id("checkpoint_id"),),
            "checkpoint_ns": ("", "inner", "inner:1|x", "|", "inner:" + self._id("run_id")),
            "last-event-id": ("0", "-1", "1-1", "999999999999999999-0", "18446744073709551616-0", "1-1-1", "5.9"),
            "as_node": ("first", "ask", "__start__", "__end__", "inner"),
            "node": ("first", "ask", "__end__"),
            "goto": ("first", "ask", "__end__"),
            "xray": ("true", "1", "99", "0", "٣"),
            "select": ("thread_id", "status", "values"),
        }
        if name in known and self._chance(0.7):
            return self.random.choice(known[name])
        return self.random.choice(TEXTS)

    def _free(self) -> Any:
        """Return JSON as a graph, a store or metadata may get it."""
        unusable: tuple[Any, ...] = (["trail"], 1, "nothing", {})
        nothing: dict[str, Any] = {}
        none: list[Any] = []
        choices: tuple[Any, ...] = (
            nothing,
            None,
            none,
            {"seen": ["x"]},
            {"seen": "x", "delay": -1},
            {"topic": "x", "decisions": none},
            {"messages": [{"role": "user", "content": "hi"}]},
            {"messages": [{"role": "nobody", "content": nothing}]},
            {"configurable": {"thread_id": self._id("thread_id"), "checkpoint_id": self._id("checkpoint_id")}},
            {"a": {"$eq": 1}, "b": {"$gt": "x"}, "c": {"$nothing": none}},
            {"graph_id": self.random.choice(unusable)},
            {self.random.choice(TEXTS): self.random.choice(TEXTS)},
            {"n": self.random.choice(NUMBERS)},
            {"deep": DEEP},
        )
        return self.random.choice(choices)

    def _junk(self) -> Any:
        text, number = self.random.choice(TEXTS), self.random.choice(NUMBERS)
        choices: tuple[Any, ...] = (text, number, None, [], {}, True, [[]], [None], {"": {"": ""}}, DEEP, {"a": DEEP})
        return self.random.choice(choices)

    def _id(self, name: str) -> str:
        """Return an id: mostly one that exists, of the caller or of another tenant."""
        kind = KINDS.get(name, name)
        fraction = self.random.random()
        if fraction < 0.45 and self.own.get(kind):
            return self.random.choice(self.own[kind])
        if fraction < 0.8 and self.foreign.get(kind):
            return self.random.choice(self.foreign[kind])
        if fraction < 0.85:
            return self.random.choice([id for ids in self.foreign.values() for id in ids])
        if fraction < 0.92:
            return f"{self.random.getrandbits(128):032x}"
        return self.random.choice(TEXTS) or "%20"

    def _content_type(self) -> str:
        return self.random.choice(CONTENT_TYPES[:-1]) if self._chance(0.15) else CONTENT_TYPES[0]

    def _text(self, value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    def _chance(self, fraction: float) -> bool:
        return self.random.random() < fraction


def _clean(text: str) -> str:
    """Return a text that an HTTP client sends as a header."""
    return text.encode("ascii", "replace").decode().translate({0: "0", 10: "", 13: "", 127: ""}).strip()


def _quote(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="") or "%20"
