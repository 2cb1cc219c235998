"""Documents: many forms, exact places, and a rule about which one is right."""

from collections import Counter
from itertools import islice

import pytest

from offing.library.html_reader import read_html
from offing_world.document_builder import FileFormat
from offing_world.documents import Authority, WorldDocument, build_document, iter_documents, locate_statement
from offing_world.facts import World, world_from_name
from offing_world.semantics import RELATION_TABLE

SPEC = "heldout-4@400"


@pytest.fixture(scope="module")
def written() -> tuple[WorldDocument, ...]:
    return tuple(iter_documents(SPEC))


@pytest.fixture(scope="module")
def world() -> World:
    return world_from_name(SPEC)


def test_a_world_has_as_many_documents_as_its_name_says_each_with_a_path_of_its_own(
    written: tuple[WorldDocument, ...],
) -> None:
    assert len(written) == 400
    assert len({d.path for d in written}) == 400
    assert [d.number for d in written] == list(range(400))


def test_a_document_is_the_same_alone_as_in_the_stream(written: tuple[WorldDocument, ...], world: World) -> None:
    assert all(build_document(world, d.number) == d for d in written)


def test_documents_come_in_three_forms_with_prose_tables_and_lists(written: tuple[WorldDocument, ...]) -> None:
    forms = Counter(d.path.rpartition(".")[2] for d in written)
    assert all(forms[form] > 40 for form in FileFormat)
    for mark in ("| What | Entry |", "<li>", "\n- ", "## ", "====", "<p>"):
        assert any(mark in d.text for d in written), mark


def test_the_register_states_every_relation_of_every_entity_correctly(
    written: tuple[WorldDocument, ...], world: World
) -> None:
    for relation in RELATION_TABLE:
        for entity in world.members[relation.subject]:
            page, start, end = locate_statement(world, relation.name, entity)
            quote, values = page.text[start:end], world.find_values(relation.name, entity)
            assert page.authority is Authority.REGISTER
            assert all(value in quote for value in values)
            assert values or "record" in quote
            assert "<" not in quote


def test_the_register_is_never_wrong_and_the_other_papers_often_are(written: tuple[WorldDocument, ...]) -> None:
    statements = [(d.authority, s.true) for d in written for s in d.statements]
    wrong = Counter(authority for authority, true in statements if not true)
    assert not wrong[Authority.REGISTER]
    assert wrong[Authority.EDITION] > 30
    assert wrong[Authority.LETTER] > 30
    assert all(any(true for a, true in statements if a is authority) for authority in Authority)


def test_what_a_statement_claims_is_true_where_it_is_marked_so(
    written: tuple[WorldDocument, ...], world: World
) -> None:
    for result in written:
        for statement in result.statements:
            values = world.find_values(statement.relation, statement.entity)
            quote = result.text[statement.start : statement.end]
            assert statement.true == (all(v in quote for v in values) and (bool(values) or "record" in quote))


def test_a_paper_that_may_be_wrong_says_what_it_is(written: tuple[WorldDocument, ...]) -> None:
    assert all("superseded" in d.text for d in written if d.authority is Authority.EDITION)
    assert all(d.path.startswith("letters/") for d in written if d.authority is Authority.LETTER)
    assert "the current register is right" in written[0].text


def test_quotes_are_found_in_the_text_that_the_library_takes_from_a_page(written: tuple[WorldDocument, ...]) -> None:
    pages = [d for d in written if d.path.endswith(".html")]
    for result in pages:
        text = read_html(result.text.encode()).text
        for statement in result.statements:
            assert result.text[statement.start : statement.end] in text


def test_a_large_world_streams() -> None:
    """The first documents come without the last ones having been made."""
    assert len(list(islice(iter_documents("train-1@5000"), 5))) == 5


@pytest.mark.parametrize("number", [-1, 400])
def test_there_is_no_document_beyond_the_last(world: World, number: int) -> None:
    with pytest.raises(IndexError):
        build_document(world, number)
