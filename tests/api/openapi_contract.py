"""Whether what a client sends and gets is what the OpenAPI document says: paths, query, bodies, forms and answers.

Types do not reach everywhere: an address may be put together from text, a form is built by hand, and a server ignores a
query parameter that it does not know. Here each exchange as it went over the wire is held against the document.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl

import orjson
from jsonschema_rs import Draft202012Validator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/api/v1/"

FIELD = re.compile(r'\bname="([^"]*)"')


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    media_type: str = ""
    answer: bytes = b""


@dataclass(slots=True)
class Recorder:
    """Middleware that keeps every exchange of the API. Of an event stream only the beginning of its answer."""

    app: ASGIApp
    exchanges: list[Exchange]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        headers = dict(Headers(scope=scope).items())
        query = scope["query_string"].decode()
        exchange = Exchange(scope["method"], scope["path"], query, headers, b"")
        self.exchanges.append(exchange)

        async def receiving() -> Message:
            message = await receive()
            exchange.body += message.get("body", b"")
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                exchange.media_type = _media_type(Headers(raw=message["headers"]))
            elif exchange.media_type != "text/event-stream":
                exchange.answer += message.get("body", b"")
            await send(message)

        await self.app(scope, receiving, sending)


@dataclass(slots=True)
class Contract:
    """An OpenAPI document, to hold exchanges against."""

    document: dict[str, Any]
    used: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Operations that an exchange was held against: method and path with its braces."""

    def faults(self, exchange: Exchange) -> list[str]:
        """What of the exchange the document does not know. Empty: all of it is as it says."""
        result = self._operation(exchange)
        where = f"{exchange.method} {exchange.path}"
        if result is None:
            return [f"{where}: there is no such operation"]
        template, operation = result
        self.used.add((exchange.method, template))
        faults = [*self._query(exchange, operation), *self._body(exchange, operation)]
        return [f"{where}: {fault}" for fault in [*faults, *self._answer(exchange, operation)]]

    def _operation(self, exchange: Exchange) -> tuple[str, dict[str, Any]] | None:
        method = exchange.method.lower()
        fitting = [
            (template, operations[method])
            for template, operations in self.document["paths"].items()
            if method in operations and re.fullmatch(re.sub(r"\\?\{[^}]*\\?\}", "[^/]+", template), exchange.path)
        ]
        # `/runs/wait` is the path of that name and not a run called `wait`.
        return min(fitting, key=lambda one: one[0].count("{"), default=None)

    def _query(self, exchange: Exchange, operation: dict[str, Any]) -> list[str]:
        known = {p["name"]: p["schema"] for p in operation.get("parameters", ()) if p["in"] == "query"}
        sent = [name for name, _ in parse_qsl(exchange.query, keep_blank_values=True)]
        faults = [f"no query parameter {name!r}" for name in sorted({*sent} - known.keys())]
        for name in sorted({*sent} & known.keys()):
            if sent.count(name) > 1 and not _takes_list(known[name]):
                faults.append(f"query parameter {name!r} is sent {sent.count(name)} times, and takes one value")
        return faults

    def _body(self, exchange: Exchange, operation: dict[str, Any]) -> list[str]:
        content = operation.get("requestBody", {}).get("content", {})
        if not exchange.body:
            return ["a body is required"] if operation.get("requestBody", {}).get("required") else []
        kind = _media_type(exchange.headers)
        if kind not in content:
            return [f"no body of type {kind!r}"]
        if kind == "multipart/form-data":
            return self._form(exchange, content[kind]["schema"])
        return self._document(orjson.loads(exchange.body), content[kind]["schema"], "body")

    def _form(self, exchange: Exchange, schema: dict[str, Any]) -> list[str]:
        head = f"Content-Type: {exchange.headers['content-type']}\r\n\r\n".encode("latin-1")
        parts: Sequence[Any] = BytesParser().parsebytes(head + exchange.body).get_payload()  # type: ignore[assignment]
        names = [m[1] for part in parts if (m := FIELD.search(str(part["Content-Disposition"])))]
        unknown = [f"no form field {name!r}" for name in sorted({*names} - schema["properties"].keys())]
        return unknown + [f"form field {name!r} is missing" for name in schema["required"] if name not in names]

    def _answer(self, exchange: Exchange, operation: dict[str, Any]) -> list[str]:
        responses = operation["responses"]
        if str(exchange.status) not in responses:
            return [f"no answer {exchange.status} is described: {exchange.answer[:300]!r}"]
        if exchange.status >= 400:
            return [f"was refused with {exchange.status}: {exchange.answer[:300].decode(errors='replace')}"]
        schema = responses[str(exchange.status)].get("content", {}).get("application/json", {}).get("schema")
        if exchange.media_type != "application/json" or schema is None:
            return []
        return self._document(orjson.loads(exchange.answer), schema, "answer")

    def _document(self, value: Any, schema: dict[str, Any], where: str) -> list[str]:
        whole = {**schema, "components": self.document["components"]}
        errors = Draft202012Validator(whole).iter_errors(value)
        return [f"{where} at {'.'.join(map(str, e.instance_path)) or 'its top'}: {e.message[:300]}" for e in errors]


def _takes_list(schema: dict[str, Any]) -> bool:
    return any(one.get("type") == "array" for one in (schema, *schema.get("anyOf", ())))


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
