"""Labels: where an observation came from and how far it is trusted, and that doubt is never trust."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.evidence import EvidenceBook
from offing.core.provenance import (
    NOBODY,
    PLATFORM,
    Kind,
    Label,
    Origin,
    Trust,
    host_of,
    label_in,
    observation,
    parsed,
)
from offing.core.tool import ToolSpec
from offing.tools.tool import ToolArgs

SOURCE, TEXT = str(UUID(int=1)), str(UUID(int=2))


def spec(name: str, *, untrusted: bool = True) -> ToolSpec:
    return ToolSpec(name, "Does.", ToolArgs, "do", untrusted=untrusted)


def passage(**more: Any) -> dict[str, Any]:
    return {"source": SOURCE, "artefact": TEXT, "start": 0, "end": 4, "text": "Text", **more}


@pytest.mark.parametrize(
    ("tool", "content", "origin"),
    [
        ("fetch_page", passage(name="https://Docs.Example.org:8443/a?b"), "web:docs.example.org"),
        ("read_source", passage(name="harbour.md"), f"file:{SOURCE}"),
        ("search_library", {"passages": []}, "tool:search_library"),
        ("web_search", {"results": []}, "tool:web_search"),
        ("mcp_tickets_find", {"text": "x", "name": "https://example.org/"}, "mcp:tickets"),
        ("fetch_page", {"name": "https://[bad"}, "tool:fetch_page"),
    ],
)
def test_an_observation_is_from_where_its_tool_got_it(tool: str, content: dict[str, Any], origin: str) -> None:
    assert observation(spec(tool), content) == Label(parsed(origin), Trust.UNTRUSTED)
    assert str(parsed(origin)) == origin


def test_a_tool_that_only_computes_is_trusted_and_what_the_platform_says_is_its_own() -> None:
    assert observation(spec("calculate", untrusted=False), {}).trust is Trust.TRUSTED
    assert observation(None, {}) == PLATFORM


def test_a_label_is_read_back_as_it_was_recorded() -> None:
    for label in (
        NOBODY,
        PLATFORM,
        Label(Origin(Kind.WEB, "example.org")),
        Label(Origin(Kind.TOOL, "t"), Trust.TRUSTED),
    ):
        assert label_in(label.as_json()) == label


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"trust": "trusted"},
        {"origin": "tool:x"},
        {"origin": "system", "trust": "Trusted"},
        {"origin": 3, "trust": "user"},
        {"origin": "root:x", "trust": "trusted"},
        {"origin": "unknown", "trust": "trusted"},
        {"origin": "system", "trust": ["trusted"]},
    ],
)
def test_an_old_row_or_an_odd_one_is_untrusted(payload: dict[str, Any]) -> None:
    assert label_in(payload).trust is Trust.UNTRUSTED


@given(st.text(max_size=80))
def test_no_name_forges_another_origin_or_breaks_a_line(name: str) -> None:
    origin = parsed(f"web:{name}")
    assert origin.kind is Kind.WEB
    assert not any(c.isspace() or ord(c) < 32 for c in str(origin))
    assert parsed(str(origin)) == origin


def test_hosts_are_read_from_web_addresses_alone() -> None:
    assert host_of("HTTP://Example.ORG./x") == "example.org"
    assert (host_of("file:///etc/passwd"), host_of("example.org"), host_of(None)) == ("", "", "")


def test_evidence_carries_the_label_of_its_own_source() -> None:
    book = EvidenceBook()
    found = observation(spec("search_library"), {"passages": []})
    book.add({"passages": [passage(name="a.md")]}, found)
    page = passage(name="https://example.org/p", artefact=str(UUID(int=3)))
    book.add(page, observation(spec("fetch_page"), page))
    book.add(passage(artefact=str(UUID(int=4))))
    labels = [str(piece.label.origin) for piece in book.latest(3)]
    assert labels == [f"file:{SOURCE}", "web:example.org", f"file:{SOURCE}"]
    assert {piece.label.trust for piece in book.latest(3)} == {Trust.UNTRUSTED}
