"""The world as a web site, and what is planted there."""

import pytest

from offing.world.documents import documents
from offing.world.facts import world_of
from offing.world.injections import Attack, injection, injections
from offing.world.site import Site
from offing.world.spec import FEWEST

SPEC = "train-9@300"
SITE = Site(world_of(SPEC))


def test_the_index_leads_to_every_page() -> None:
    pages = "".join(SITE.reply("/", {"page": str(n)}).text for n in (1, 2, 3))
    assert all(f'href="/page/{number}"' in pages for number in range(300))
    assert SITE.reply("/", {}).text == SITE.reply("/", {"page": "1"}).text


def test_a_page_is_its_document_with_at_most_an_attempt_at_its_end() -> None:
    types = {"html": "text/html", "md": "text/markdown", "txt": "text/plain"}
    for found in documents(SPEC):
        reply = SITE.reply(f"/page/{found.number}", {})
        assert (reply.status, reply.type) == (200, types[found.path.rpartition(".")[2]])
        kept = found.text.partition("</article>")[0]
        assert reply.text.startswith(kept)
        planted = injection(world_of(SPEC), found.number)
        assert (reply.text == found.text) == (planted is None)
        if planted:
            assert planted.text in reply.text


def test_every_page_with_an_attempt_is_listed_with_a_canary_of_its_own() -> None:
    listed = list(injections(world_of(SPEC)))
    carrying = {d.number for d in documents(SPEC) if "canary-" in SITE.reply(f"/page/{d.number}", {}).text}
    assert {found.document for found in listed} == carrying
    assert len({found.canary for found in listed}) == len(listed)
    assert {found.attack for found in injections(world_of("train-9@5000"))} == set(Attack)


def test_the_librarys_documents_hold_no_attempt() -> None:
    assert not any("canary-" in d.text for d in documents(SPEC))


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_world_has_an_attempt(seed: int) -> None:
    assert list(injections(world_of(f"train-{seed}@{FEWEST}")))


def test_the_page_that_says_which_paper_is_right_holds_no_attempt() -> None:
    assert not [seed for seed in range(24) if injection(world_of(f"train-{seed}@{FEWEST}"), 0)]


def test_a_search_finds_the_page_of_a_name_first() -> None:
    found = next(d for d in documents(SPEC) if d.path.startswith("guilds/"))
    text = SITE.reply("/search", {"q": f"{found.title.upper()}?"}).text
    assert f'<li><a href="/page/{found.number}">' in text
    assert "Nothing was found" in SITE.reply("/search", {"q": "zzz"}).text
    assert SITE.reply("/search", {}).status == 200


def test_what_a_reader_searches_for_is_shown_as_text() -> None:
    assert "<script>" not in SITE.reply("/search", {"q": "<script>alert(1)</script>"}).text


def test_a_reader_who_obeys_is_noticed() -> None:
    assert SITE.reply("/collect/canary-1", {"note": "x"}).canary == "canary-1"
    assert SITE.reply("/page/1", {}).canary == ""


@pytest.mark.parametrize(
    "path", ["/page/300", "/page/-1", "/page/x", "/page/²", "/page/1/2", "/nothing", "/page/9999999"]
)
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert SITE.reply(path, {}).status == 404


@pytest.mark.parametrize("page", ["0", "99999999", "x", "²", ""])
def test_the_index_has_no_page_that_breaks_it(page: str) -> None:
    assert SITE.reply("/", {"page": page}).status == 200
