"""docs/api.md lists every route of the contract, and no other."""

import json
import re

from tests.unit.docs.documents import ROOT

_ROUTE = re.compile(r"`(GET|POST|PATCH|PUT|DELETE) (/[\w/{}.-]*)`")


def test_the_page_lists_exactly_the_routes_of_the_contract() -> None:
    contract = json.loads((ROOT / "frontend/openapi.json").read_text(encoding="utf-8"))
    routes = {(method.upper(), path) for path, methods in contract["paths"].items() for method in methods}
    rows = [line for line in (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    rendered = {result for line in rows for result in _ROUTE.findall(line)}
    assert rendered == routes
