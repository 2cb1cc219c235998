"""JSON-RPC 2.0, in which clients of MCP and of A2A send their requests."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.responses import Response

from offing.protocols.langgraph.bodies import Body
from offing.protocols.langgraph.rendering import respond_json
from offing.services.langgraph_auth import AccessDeniedError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

MAX_MESSAGE_CHARS = 1000
"""Maximum length of the text of an error."""

MAX_ID_CHARS = 200

Params = TypeVar("Params", bound=BaseModel)


class RpcError(Exception):
    """`RpcError(code, message)`: a request that is answered with an error of the protocol."""

    @property
    def code(self) -> int:
        return self.args[0]

    @property
    def message(self) -> str:
        return "".join(c if c.isprintable() else "�" for c in str(self.args[1]))[:MAX_MESSAGE_CHARS]


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request, or a message that wants no answer."""

    id: str | int | float | None
    method: str
    """Empty for a response to a request that this server never sent."""
    params: Mapping[str, Any]
    wants_answer: bool


class RpcParams(Body):
    """Parameters of a method. Others are ignored, because newer versions of a protocol add some."""

    model_config = ConfigDict(extra="ignore")


class _Checked(Body):
    """A message whose values can be stored."""

    model_config = ConfigDict(extra="allow")


async def read_request(request: Request) -> RpcRequest:
    """Return the message in the body of a request. Raises RpcError."""
    try:
        body: Any = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise RpcError(PARSE_ERROR, f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise RpcError(INVALID_REQUEST, "The body is not one object. Send one message in each request.")
    message = cast(dict[str, Any], body)
    check_values(message)
    id, method, params = message.get("id"), message.get("method", ""), message.get("params")
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc: it is not "2.0". Correct it.')
    if isinstance(id, bool) or not isinstance(id, str | int | float | None) or len(str(id)) > MAX_ID_CHARS:
        raise RpcError(INVALID_REQUEST, "id: it is neither a short text nor a number. Correct it.")
    if not isinstance(method, str) or (not method and not ({"result", "error"} & message.keys())):
        raise RpcError(INVALID_REQUEST, "method: it is missing, or no text. Name the method.")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params: it is no object. Send one.")
    return RpcRequest(id, method, cast(dict[str, Any], params or {}), bool(method) and "id" in message)


def check_values(message: Mapping[str, Any]) -> None:
    """Raise RpcError for values that Postgres cannot store."""
    try:
        _Checked.model_validate(message)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, describe_problems(error)) from None


def describe_problems(error: ValidationError) -> str:
    """Return what is wrong with the fields of a body."""
    parts = [f"{'.'.join(str(one) for one in fault['loc']) or 'params'}: {fault['msg']}" for fault in error.errors()]
    return "; ".join(parts[:5])


def parse_params(model: type[Params], params: Mapping[str, Any]) -> Params:
    """Return the parameters of a method. Raises RpcError."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, describe_problems(error)) from None


def build_result(id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def build_error(id: Any, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.message}}


def respond_error(id: Any, error: RpcError, status: int = 200) -> Response:
    return respond_json(build_error(id, error), status)


async def respond_to(request: Request, handle: Callable[[RpcRequest], Awaitable[Response]]) -> Response:
    """Return what `handle` answers to the message in a request, or the error that it raises as one of the protocol."""
    message: RpcRequest | None = None
    try:
        message = await read_request(request)
        return await handle(message)
    except RpcError as error:
        return respond_error(message and message.id, error, 200 if message else 400)
    except AccessDeniedError as error:
        return respond_error(message and message.id, RpcError(INVALID_PARAMS, error.detail or "Forbidden"), 403)
