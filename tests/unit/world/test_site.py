"""The world as a web site, and what is planted there."""

import pytest

from offing_world.documents import iter_documents
from offing_world.facts import world_from_name
from offing_world.injections import Attack, find_injection, iter_injections
from offing_world.site import WorldSite
from offing_world.spec import MIN_DOCUMENTS

SPEC = "train-9@300"
SITE = WorldSite(world_from_name(SPEC))


def test_the_index_leads_to_every_page() -> None:
    pages = "".join(SITE.build_response("/", {"page": str(n)}).text for n in (1, 2, 3))
    assert all(f'href="/page/{number}"' in pages for number in range(300))
    assert SITE.build_response("/", {}).text == SITE.build_response("/", {"page": "1"}).text


def test_a_page_is_its_document_with_at_most_an_attempt_at_its_end() -> None:
    types = {"html": "text/html", "md": "text/markdown", "txt": "text/plain"}
    for result in iter_documents(SPEC):
        reply = SITE.build_response(f"/page/{result.number}", {})
        assert (reply.status, reply.media_type) == (200, types[result.path.rpartition(".")[2]])
        stored = result.text.partition("</article>")[0]
        assert reply.text.startswith(stored)
        planted = find_injection(world_from_name(SPEC), result.number)
        assert (reply.text == result.text) == (planted is None)
        if planted:
            assert planted.text in reply.text


def test_every_page_with_an_attempt_is_listed_with_a_canary_of_its_own() -> None:
    listed = list(iter_injections(world_from_name(SPEC)))
    carrying = {
        d.number for d in iter_documents(SPEC) if "canary-" in SITE.build_response(f"/page/{d.number}", {}).text
    }
    assert {result.document_number for result in listed} == carrying
    assert len({result.canary for result in listed}) == len(listed)
    assert {result.attack for result in iter_injections(world_from_name("train-9@5000"))} == set(Attack)


def test_the_librarys_documents_hold_no_attempt() -> None:
    assert not any("canary-" in d.text for d in iter_documents(SPEC))


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_world_has_an_attempt(seed: int) -> None:
    assert list(iter_injections(world_from_name(f"train-{seed}@{MIN_DOCUMENTS}")))


def test_the_page_that_says_which_paper_is_right_holds_no_attempt() -> None:
    assert not [seed for seed in range(24) if find_injection(world_from_name(f"train-{seed}@{MIN_DOCUMENTS}"), 0)]


def test_a_search_finds_the_page_of_a_name_first() -> None:
    result = next(d for d in iter_documents(SPEC) if d.path.startswith("guilds/"))
    text = SITE.build_response("/search", {"q": f"{result.title.upper()}?"}).text
    assert f'<li><a href="/page/{result.number}">' in text
    assert "Nothing was found" in SITE.build_response("/search", {"q": "zzz"}).text
    assert SITE.build_response("/search", {}).status == 200


def test_what_a_reader_searches_for_is_shown_as_text() -> None:
    assert "<script>" not in SITE.build_response("/search", {"q": "<script>alert(1)</script>"}).text


def test_a_reader_who_obeys_is_noticed() -> None:
    assert SITE.build_response("/collect/canary-1", {"note": "x"}).canary == "canary-1"
    assert SITE.build_response("/page/1", {}).canary == ""


@pytest.mark.parametrize(
    "path", ["/page/300", "/page/-1", "/page/x", "/page/²", "/page/1/2", "/nothing", "/page/9999999"]
)
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert SITE.build_response(path, {}).status == 404


@pytest.mark.parametrize("page", ["0", "99999999", "x", "²", ""])
def test_the_index_has_no_page_that_breaks_it(page: str) -> None:
    assert SITE.build_response("/", {"page": page}).status == 200
