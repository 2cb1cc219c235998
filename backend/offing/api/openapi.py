"""Build the OpenAPI document of this version with examples. `python -m offing.api.openapi` prints it."""

import sys
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_openapi

from offing.api.auth import bearer, cookie
from offing.api.examples import EXAMPLES
from offing.api.problems import MEDIA_TYPE
from offing.api.tracing_middleware import API_PREFIX

CALLER_SCHEMES = (bearer, cookie)
"""How a caller may say who it is."""

CSRF_TOKEN = {
    "name": "x-csrf-token",
    "in": "header",
    "required": False,
    "schema": {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": "Required on writes that use the session cookie.",
        "title": "X-Csrf-Token",
    },
    "description": "Required on writes that use the session cookie.",
}

FASTAPI_ERROR_SCHEMAS = ("HTTPValidationError", "ValidationError")


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's document with problems as `application/problem+json` and an example of every schema."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    shapes = document["components"]["schemas"]
    for name in FASTAPI_ERROR_SCHEMAS:
        shapes.pop(name, None)
    for name, example in EXAMPLES.items():
        shapes[name]["examples"] = [example]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _describe_problems(operation["responses"])
            if "401" in operation["responses"] and path.startswith(API_PREFIX):  # a login link answers it, too
                _describe_caller(operation)
    document["components"]["securitySchemes"] = {
        scheme.scheme_name: jsonable_encoder(scheme.model, by_alias=True, exclude_none=True)
        for scheme in CALLER_SCHEMES
    }
    return document


def _describe_caller(operation: dict[str, Any]) -> None:
    """Add how a route that needs a caller learns who it is."""
    operation["security"] = [{scheme.scheme_name: []} for scheme in CALLER_SCHEMES]
    operation["parameters"] = [*operation.get("parameters", []), CSRF_TOKEN]


def _describe_problems(responses: dict[str, Any]) -> None:
    for response in responses.values():
        content = response.get("content", {})
        body = content.get("application/json")
        if body and body["schema"].get("$ref", "").endswith("/Problem"):
            response["content"] = {MEDIA_TYPE: body}


def main() -> None:
    from offing.api.app import create_app
    from offing.settings import Settings

    document = create_app(Settings()).openapi()
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    main()
