"""The OpenAPI document: complete, true to the code, and a list of every context."""

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import orjson
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Mount

from offing.api import schemas
from offing.api.app import create_app
from offing.api.examples import EXAMPLES
from offing.api.schemas.base import Problem
from offing.settings import Settings
from tests.api.conftest import Api

OPEN = {
    ("get", "/langgraph/ok"),
    ("get", "/langgraph/info"),
    ("get", "/api/v1/health/live"),
    ("get", "/api/v1/health/ready"),
    ("get", "/login"),
    ("get", "/api/v1/shared/{token}"),
    ("get", "/api/v1/shared/{token}/export"),
}
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


ROOMS = [import_module(f"{schemas.__name__}.{one.name}") for one in iter_modules(schemas.__path__)]


def test_every_example_has_its_shape() -> None:
    for name, example in EXAMPLES.items():
        shape = next(result for room in ROOMS if (result := getattr(room, name, None)) is not None)
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


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

PARAMETER = re.compile(r"{[^}]+}")


def list_routes(routes: Sequence[BaseRoute], prefix: str = "") -> list[tuple[str, frozenset[str], bool]]:
    """Every address that the application serves, with its methods, and whether the document names it.

    Of a mounted application that does not tell its routes, the address that it is mounted at, with every method.
    """
    results: list[tuple[str, frozenset[str], bool]] = []
    for context in iter_route_contexts(routes):
        route: Any = context.original_route
        if isinstance(route, Mount):
            results += list_routes(route.routes, prefix + route.path) or [
                (prefix + route.path, frozenset(METHODS), False)
            ]
        else:
            path = str(context.path)
            results.append(
                (prefix + path, frozenset(context.methods or ()), bool(getattr(route, "include_in_schema", 0)))
            )
    return results


def is_of_another_protocol(path: str) -> bool:
    """Whether an address belongs to clients of LangGraph's API, whose documents and errors have another form."""
    return path.startswith("/langgraph/")


def filled(path: str) -> str:
    """An address with something in place of its parameters."""
    return PARAMETER.sub(UUID, path.replace("{seq}", "1").replace("{version}", "1"))


async def test_every_route_but_a_few_named_ones_needs_a_key(api: Api) -> None:
    served = list_routes(api.app.routes)
    assert len(served) > 60
    assert "/api/v1/openapi.json" in {path for path, _, _ in served}
    methods_of: dict[str, set[str]] = {}
    for path, methods, _ in served:
        methods_of.setdefault(path, set()).update(methods)
    for path, methods in methods_of.items():
        for method in METHODS:
            if (method.lower(), path) in OPEN:
                continue
            response = await api.nobody.request(method, filled(path))
            if method in methods:
                assert response.status_code == 401, (method, path, response.text)
            else:
                assert response.status_code in (401, 405), (method, path, response.text)
            expected = "application/json" if is_of_another_protocol(path) else "application/problem+json"
            assert response.headers["content-type"] == expected, (method, path)


async def test_what_is_no_route_answers_nobody_with_nothing_but_that(api: Api) -> None:
    for path in ("/api", "/api/v1", "/api/v1/nothing", "/api/v1/docs", "/api/v2/runs", "/api/openapi.json"):
        for method in ("GET", "POST", "DELETE"):
            response = await api.nobody.request(method, path)
            assert response.status_code in (404, 405), (method, path)
            assert set(response.json()) == set(Problem.model_fields), (method, path)
    for path in ("/openapi.json", "/docs", "/redoc", "/docs/oauth2-redirect"):
        response = await api.nobody.get(path)
        assert "openapi" not in response.text.lower(), path
        assert "swagger" not in response.text.lower(), path


def test_no_route_is_missing_from_the_document() -> None:
    described = {(method, path) for method, path, _ in operations(document())}
    served = [one for one in list_routes(create_app(Settings()).routes) if not is_of_another_protocol(one[0])]
    assert {(method.lower(), path) for path, methods, rendered in served if rendered for method in methods} == described
    assert {path for path, _, rendered in served if not rendered} == {"/api/v1/openapi.json"}


async def test_the_document_itself_is_served_to_those_who_have_a_key(api: Api) -> None:
    rejected = await api.nobody.get("/api/v1/openapi.json")
    assert rejected.status_code == 401
    response = await api.http.get("/api/v1/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == document()
