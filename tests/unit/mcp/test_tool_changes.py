"""What has changed in a tool list is named field by field, as data."""

from offing.mcp.tool_changes import MAX_FIELD_CHANGES, MAX_VALUE_CHARS, FieldChange, ToolChangeKind, list_tool_changes
from offing.mcp.tool_listing import McpToolListing


def listing(name: str = "search", description: str = "Searches.", /, **properties: object) -> McpToolListing:
    return McpToolListing(name, description, {"type": "object", "properties": properties})


def test_the_same_tools_in_another_order_have_not_changed() -> None:
    one, other = listing("a", limit={"maximum": 3}), listing("b")
    assert list_tool_changes([one, other], [other, one]) == ()


def test_each_changed_field_is_named_with_both_values() -> None:
    (change,) = list_tool_changes(
        [listing(limit={"type": "integer", "maximum": 20})],
        [listing("search", "Finds.", limit={"type": "integer", "maximum": 50}, to={"type": "string"})],
    )
    assert change.kind is ToolChangeKind.CHANGED
    assert change.fields == (
        FieldChange("description", "Searches.", "Finds."),
        FieldChange("schema.properties.limit.maximum", "20", "50"),
        FieldChange("schema.properties.to.type", None, '"string"'),
    )


def test_added_and_removed_tools_are_named() -> None:
    changes = list_tool_changes([listing("old")], [listing("new")])
    assert [(one.tool, one.kind.value) for one in changes] == [("new", "added"), ("old", "removed")]


def test_text_of_a_server_is_shortened_and_has_no_invisible_characters() -> None:
    (change,) = list_tool_changes([listing()], [listing("search", "\u202eevil\u200b" + "x" * 5_000)])
    after = change.fields[0].after or ""
    assert len(after) <= MAX_VALUE_CHARS
    assert not {"\u202e", "\u200b"} & set(after)


def test_a_schema_with_many_changes_lists_some_and_counts_the_others() -> None:
    many = {f"p{n}": {"type": "string"} for n in range(MAX_FIELD_CHANGES + 30)}
    (change,) = list_tool_changes([listing()], [listing(**many)])
    assert len(change.fields) == MAX_FIELD_CHANGES
    assert len(change.fields) + change.omitted_fields >= len(many)
