"""Labels: where an observation came from and how far it is trusted, and that doubt is never trust."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.evidence import EvidenceIndex
from offing.core.provenance import (
    NO_PROVENANCE,
    PLATFORM_LABEL,
    Origin,
    OriginKind,
    ProvenanceLabel,
    TrustLevel,
    extract_host,
    label_tool_result,
    parse_label,
    parse_origin,
)
from offing.core.tool import ToolSpec
from offing.tools.tool import ToolArgs

SOURCE, TEXT = str(UUID(int=1)), str(UUID(int=2))


def spec(name: str, *, untrusted: bool = True) -> ToolSpec:
    return ToolSpec(name, "Does.", ToolArgs, "do", untrusted=untrusted)


def passage(**more: Any) -> dict[str, Any]:
    return {"source": SOURCE, "text_id": TEXT, "start": 0, "end": 4, "text": "Text", **more}


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
    assert label_tool_result(spec(tool), content) == ProvenanceLabel(parse_origin(origin), TrustLevel.UNTRUSTED)
    assert str(parse_origin(origin)) == origin


def test_a_tool_that_only_computes_is_trusted_and_what_the_platform_says_is_its_own() -> None:
    assert label_tool_result(spec("calculate", untrusted=False), {}).trust is TrustLevel.TRUSTED
    assert label_tool_result(None, {}) == PLATFORM_LABEL


def test_a_label_is_read_back_as_it_was_recorded() -> None:
    for label in (
        NO_PROVENANCE,
        PLATFORM_LABEL,
        ProvenanceLabel(Origin(OriginKind.WEB, "example.org")),
        ProvenanceLabel(Origin(OriginKind.TOOL, "t"), TrustLevel.TRUSTED),
    ):
        assert parse_label(label.to_json()) == label


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
    assert parse_label(payload).trust is TrustLevel.UNTRUSTED


@given(st.text(max_size=80))
def test_no_name_forges_another_origin_or_breaks_a_line(name: str) -> None:
    origin = parse_origin(f"web:{name}")
    assert origin.kind is OriginKind.WEB
    assert not any(c.isspace() or ord(c) < 32 for c in str(origin))
    assert parse_origin(str(origin)) == origin


def test_hosts_are_read_from_web_addresses_alone() -> None:
    assert extract_host("HTTP://Example.ORG./x") == "example.org"
    assert (extract_host("file:///etc/passwd"), extract_host("example.org"), extract_host(None)) == ("", "", "")


def test_evidence_carries_the_label_of_its_own_source() -> None:
    book = EvidenceIndex()
    result = label_tool_result(spec("search_library"), {"passages": []})
    book.add({"passages": [passage(name="a.md")]}, result)
    page = passage(name="https://example.org/p", text_id=str(UUID(int=3)))
    book.add(page, label_tool_result(spec("fetch_page"), page))
    book.add(passage(text_id=str(UUID(int=4))))
    labels = [str(piece.provenance.origin) for piece in book.latest(3)]
    assert labels == [f"file:{SOURCE}", "web:example.org", f"file:{SOURCE}"]
    assert {piece.provenance.trust for piece in book.latest(3)} == {TrustLevel.UNTRUSTED}
