"""The OpenAPI document: complete, true to the code, and a list of every door."""

from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.routing import APIRoute

from offing.api import collecting, families, jobs, learning, questions, schemas, standing, training
from offing.api.app import create_app
from offing.api.examples import EXAMPLES
from offing.settings import Settings
from tests.api.conftest import Api

OPEN = {("get", "/api/v1/health/live"), ("get", "/api/v1/health/ready"), ("get", "/login")}
"""All that anyone may ask without a key or session."""

COMMITTED = Path(__file__).parents[2] / "frontend" / "openapi.json"

UUID = "01980000-0000-7000-8000-000000000001"


def document() -> dict[str, Any]:
    return orjson.loads(orjson.dumps(create_app(Settings()).openapi()))


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, op) for path, ops in described["paths"].items() for method, op in ops.items()]


def test_the_committed_document_is_that_of_the_code() -> None:
    assert orjson.loads(COMMITTED.read_bytes()) == document(), (
        "run `python -m offing.api.openapi > frontend/openapi.json`"
    )


def test_every_example_has_its_shape() -> None:
    for name, example in EXAMPLES.items():
        rooms = (schemas, collecting, training, jobs, standing, learning, questions, families)
        shape = next(found for room in rooms if (found := getattr(room, name, None)) is not None)
        shape.model_validate_json(orjson.dumps(example))


def test_every_shape_that_travels_whole_has_an_example() -> None:
    described = document()
    for method, path, op in operations(described):
        for response in op["responses"].values():
            for content in response.get("content", {}).values():
                schema = content.get("schema", {})
                reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
                if reference:
                    name = reference.rpartition("/")[2]
                    assert described["components"]["schemas"][name].get("examples"), (method, path, name)


def test_every_operation_says_what_it_does_and_how_it_fails() -> None:
    for method, path, op in operations(document()):
        assert op["description"], (method, path)
        assert op["tags"], (method, path)
        ready = path == "/api/v1/health/ready"
        failures = {s: r for s, r in op["responses"].items() if int(s) >= 400 and not (ready and s == "503")}
        assert failures, (method, path)
        for status, response in failures.items():
            assert list(response["content"]) == ["application/problem+json"], (method, path, status)


async def test_every_door_but_a_few_named_ones_needs_a_key(api: Api) -> None:
    walked = 0
    for method, path, _ in operations(document()):
        if (method, path) in OPEN:
            continue
        address = path.replace("{seq}", "1")
        for name in ("run_id", "thread_id", "source_id"):
            address = address.replace(f"{{{name}}}", UUID)
        response = await api.nobody.request(method.upper(), address)
        assert response.status_code == 401, (method, path, response.text)
        assert response.headers["content-type"] == "application/problem+json"
        walked += 1
    assert walked > 25


def test_no_door_is_missing_from_the_document() -> None:
    described = {(method, path) for method, path, _ in operations(document())}
    found = {
        (method.lower(), route.path)
        for route in _routes(create_app(Settings()))
        for method in route.methods or ()
        if route.include_in_schema
    }
    assert found <= described
    hidden = {route.path for route in _routes(create_app(Settings())) if not route.include_in_schema}
    assert hidden <= {"/"}


def _routes(app: FastAPI) -> list[APIRoute]:
    return [route for route in app.routes if isinstance(route, APIRoute)]


async def test_the_document_itself_is_served(api: Api) -> None:
    response = await api.nobody.get("/api/v1/openapi.json")
    assert response.json()["info"]["title"] == "Offing"
