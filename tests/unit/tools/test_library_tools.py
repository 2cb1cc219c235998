"""The library's tools over a small library in memory."""

from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from pydantic import ValidationError

from offing.core.tool import SourceSpan
from offing.tools import create_tools
from offing.tools.read_source import ReadSource, ReadSourceArgs, build_window_output
from offing.tools.search_library import SearchLibrary, SearchLibraryArgs
from offing.tools.tool import FoundPassage, FoundPassages, TextWindow, ToolFailedError, ToolScope

TEXT_ID, SOURCE, RUN = UUID(int=1), UUID(int=2), UUID(int=3)
TEXT = "A pool keeps sockets open. \U0001f600 An agent keeps pools. " * 4


@dataclass(frozen=True)
class OneDocument:
    """A library of one text; the tools ask for nothing else of it."""

    async def search(self, query: str, limit: int) -> FoundPassages:
        result = FoundPassage(TEXT_ID, SOURCE, "Pools", "pools.md", "Keeping", 0, 26, TEXT[:26], 1.23456)
        return FoundPassages((result,)[:limit] if "pool" in query else ())

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        if reference != "pools.md":
            return None
        return TextWindow(SOURCE, TEXT_ID, "Pools", "pools.md", start, TEXT[start : start + length], len(TEXT))

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        return ("pools.md",)


@dataclass(frozen=True)
class Dated(OneDocument):
    passage: FoundPassage

    async def search(self, query: str, limit: int) -> FoundPassages:
        return FoundPassages((self.passage,))


SCOPE = ToolScope(UUID(int=9), RUN, "key", OneDocument())


async def test_a_search_shows_passages_and_remembers_their_spans() -> None:
    output = await SearchLibrary()(SearchLibraryArgs(query="connection pool"), SCOPE)
    assert output.content["passages"][0] == {
        "text_id": str(TEXT_ID),
        "source": str(SOURCE),
        "title": "Pools",
        "name": "pools.md",
        "heading": "Keeping",
        "start": 0,
        "end": 26,
        "text": TEXT[:26],
        "score": 1.235,
    }
    assert output.spans == (SourceSpan(TEXT_ID, 0, 26),)
    assert (output.title, output.detail) == ("connection pool", "1 passage from 1 source")


async def test_the_date_of_a_document_is_beside_its_passages_and_windows_if_it_is_known() -> None:
    passage = FoundPassage(TEXT_ID, SOURCE, "Pools", "pools.md", "", 0, 26, TEXT[:26], 1.0, "2024-03")
    window = TextWindow(SOURCE, TEXT_ID, "Pools", "pools.md", 0, TEXT, len(TEXT), "2024-03")
    output = await SearchLibrary()(SearchLibraryArgs(query="pool"), replace(SCOPE, library=Dated(passage)))
    assert output.content["passages"][0]["published"] == "2024-03"
    assert build_window_output(window).content["published"] == "2024-03"
    assert "published" not in build_window_output(replace(window, published="")).content


async def test_a_search_without_matches_says_so() -> None:
    output = await SearchLibrary()(SearchLibraryArgs(query="nothing"), SCOPE)
    assert (output.content["passages"], output.detail) == ([], "nothing found")


@dataclass(frozen=True)
class LibraryWithNotice(OneDocument):
    async def search(self, query: str, limit: int) -> FoundPassages:
        return FoundPassages((), ("The passages are ranked by their words alone.",))


async def test_a_search_tells_the_model_what_it_could_not_do() -> None:
    scope = ToolScope(UUID(int=9), RUN, "key", LibraryWithNotice())
    output = await SearchLibrary()(SearchLibraryArgs(query="connection pool"), scope)
    assert output.content["notices"] == ["The passages are ranked by their words alone."]
    without = await SearchLibrary()(SearchLibraryArgs(query="connection pool"), SCOPE)
    assert "notices" not in without.content


async def test_reading_on_goes_window_by_window_to_the_end() -> None:
    at, read = 0, ""
    while at is not None:
        output = await ReadSource()(ReadSourceArgs(source="pools.md", start=at, length=50), SCOPE)
        assert output.spans == (SourceSpan(TEXT_ID, at, output.content["end"]),)
        read += output.content["text"]
        at = output.content["next"]
    assert read == TEXT


@dataclass(frozen=True)
class KnownById(OneDocument):
    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        return await super().read("pools.md" if reference == str(SOURCE) else reference, start, length)


async def find_source(label: str) -> UUID | None:
    return SOURCE if label == "S1" else None


@pytest.mark.parametrize("reference", ["S1", "s1", "[S1]", str(SOURCE), "pools.md"])
async def test_a_source_is_read_by_its_short_id_its_id_or_its_name(reference: str) -> None:
    scope = ToolScope(UUID(int=9), RUN, "key", KnownById(), find_source=find_source)
    output = await ReadSource()(ReadSourceArgs(source=reference), scope)
    assert output.content["source"] == str(SOURCE)


async def test_a_short_id_that_the_run_does_not_have_is_a_name() -> None:
    scope = ToolScope(UUID(int=9), RUN, "key", KnownById(), find_source=find_source)
    with pytest.raises(ToolFailedError, match="No source is called S2"):
        await ReadSource()(ReadSourceArgs(source="S2"), scope)


async def test_an_unknown_source_is_answered_with_known_ones() -> None:
    with pytest.raises(ToolFailedError, match=r"pools\.md"):
        await ReadSource()(ReadSourceArgs(source="other.md"), SCOPE)


async def test_reading_past_the_end_says_where_it_is() -> None:
    with pytest.raises(ToolFailedError, match=str(len(TEXT))):
        await ReadSource()(ReadSourceArgs(source="pools.md", start=len(TEXT)), SCOPE)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("search_library", {"query": ""}),
        ("search_library", {"query": "x" * 501}),
        ("search_library", {"query": "x", "limit": 21}),
        ("search_library", {"query": "x", "tenant": "other"}),
        ("read_source", {"source": "x", "start": -1}),
        ("read_source", {"source": "x", "length": 6001}),
        ("calculate", {"expression": "1" * 501}),
    ],
)
def test_arguments_outside_the_schema_are_rejected(tool: str, args: dict[str, object]) -> None:
    spec = next(t.spec for t in create_tools() if t.spec.name == tool)
    with pytest.raises(ValidationError):
        spec.args.model_validate(args)


def test_what_comes_from_documents_is_declared_untrusted() -> None:
    assert {t.spec.name: t.spec.untrusted for t in create_tools()} == {
        "search_library": True,
        "read_source": True,
        "calculate": False,
    }
