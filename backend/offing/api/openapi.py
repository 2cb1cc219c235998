"""Build the OpenAPI document of this version with examples. `python -m offing.api.openapi` prints it."""

import sys
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from offing.api.examples import EXAMPLES
from offing.api.problems import MEDIA_TYPE

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
    for path in document["paths"].values():
        for operation in path.values():
            _describe_problems(operation["responses"])
    return document


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
