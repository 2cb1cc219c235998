"""The documents of a world as readable text in several file formats.

Each document is generated on its own, so that 50,000 documents can be streamed. This module
defines their order and their paths, and records the position of every statement. The
current register is always correct; older editions and letters also contain false statements
and are labeled as such.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from random import Random

from offing_world.document_builder import DocumentBuilder, DocumentLine, FileFormat, StatementSpan
from offing_world.facts import MAX_CACHED_WORLDS, DocumentPlan, World, draw_value, plan_documents, world_from_name
from offing_world.semantics import RELATION_TABLE, EntityKind, Relation
from offing_world.sentence_templates import (
    ARCHIVE_GUIDE,
    ASIDES,
    GREETINGS,
    OPENINGS,
    PARTINGS,
    RELATION_LABELS,
    STATEMENTS,
    UNRECORDED,
)

FOLDERS = {EntityKind.PERSON: "people", EntityKind.TOWN: "towns", EntityKind.GUILD: "guilds", EntityKind.BOOK: "books"}
RELATIONS_BY_KIND = {kind: tuple(r for r in RELATION_TABLE if r.subject == kind) for kind in FOLDERS}
MAX_DIRECTORY_ENTRIES = 8
"""Maximum number of entities in one directory."""
FALSE_STATEMENT_PROBABILITY = 0.6
"""Probability that one statement of an older edition or a letter contradicts the register."""


class Authority(StrEnum):
    """Authority of a document where documents contradict each other, highest first."""

    REGISTER = "register"
    EDITION = "older edition"
    LETTER = "letter"


@dataclass(frozen=True, slots=True)
class WorldDocument:
    number: int
    """Number of the document, from 0 without gaps."""
    path: str
    """Path within the world. The suffix is the file format: md, txt or html."""
    title: str
    authority: Authority
    text: str
    statements: tuple[StatementSpan, ...]


def iter_documents(world_name: str) -> Iterator[WorldDocument]:
    """Yield all documents of a world in order.

    Raises `InvalidInput` if `world_name` is not the name of a world.
    """
    world = world_from_name(world_name)
    return (build_document(world, number) for number in range(world.spec.documents))


def build_document(world: World, number: int) -> WorldDocument:
    """Build the document with a number. Raises `IndexError` if the number is too large."""
    if not 0 <= number < world.spec.documents:
        raise IndexError(number)
    if number == 0:
        return WorldDocument(0, "about-this-archive.md", "About this archive", Authority.REGISTER, ARCHIVE_GUIDE, ())
    rng = Random(f"document {world.spec.base} {number}")
    index = number - 1
    for write, total in _list_writers(plan_documents(world.spec.documents)):
        if index < total:
            return write(world, number, index, rng)
        index -= total
    raise AssertionError("the plan adds up to the number of documents")


def locate_statement(world: World, relation: str, entity: str) -> tuple[WorldDocument, int, int]:
    """Return the register page that states a relation of an entity, with the span of the statement.

    The statement may also say that the relation is not recorded. Raises `LookupError` if such
    an entity cannot have the relation.
    """
    page = build_document(world, _map_page_numbers(world)[entity])
    for statement in page.statements:
        if (statement.relation, statement.entity) == (relation, entity):
            return page, statement.start, statement.end
    raise LookupError(f"{page.path} states no {relation} of {entity}")


DocumentWriter = Callable[[World, int, int, Random], WorldDocument]
"""Writes the document with a given number, which is document `index` of its type."""


def _list_writers(document_plan: DocumentPlan) -> tuple[tuple[DocumentWriter, int], ...]:
    return (
        (_write_article, document_plan.articles),
        (_write_edition, document_plan.editions),
        (_write_letter, document_plan.letters),
        (_write_directory, document_plan.directories),
    )


@lru_cache(maxsize=MAX_CACHED_WORLDS)
def _list_entities(world: World) -> tuple[str, ...]:
    return tuple(world.kinds)


@lru_cache(maxsize=MAX_CACHED_WORLDS)
def _map_page_numbers(world: World) -> Mapping[str, int]:
    """Map each entity to the number of its page in the register."""
    return {entity: index + 1 for index, entity in enumerate(_list_entities(world))}


def _write_article(world: World, number: int, index: int, rng: Random) -> WorldDocument:
    entity = _list_entities(world)[index]
    kind = world.kinds[entity]
    page = DocumentBuilder(rng.choices(list(FileFormat), (45, 25, 30))[0], entity)
    facts = [(r, world.find_values(r.name, entity)) for r in RELATIONS_BY_KIND[kind]]
    rng.shuffle(facts)
    in_prose = len(facts) if rng.random() < 0.5 else rng.randint(0, len(facts) - 1)
    page.add_paragraph([DocumentLine(rng.choice(OPENINGS[kind]).format(s=entity)), *_draw_asides(world, rng, 1)])
    page.add_paragraph([_build_sentence(r, entity, v, True, rng) for r, v in facts[:in_prose]])
    page.add_paragraph(_draw_asides(world, rng, rng.randint(0, 2)))
    if facts[in_prose:]:
        page.add_heading("Record")
        page.add_rows([_build_entry(r, entity, v) for r, v in facts[in_prose:]])
    path = f"{FOLDERS[kind]}/{_slugify(entity)}.{page.file_format}"
    return WorldDocument(number, path, entity, Authority.REGISTER, page.build_text(), tuple(page.statements))


def _write_edition(world: World, number: int, index: int, rng: Random) -> WorldDocument:
    entity = rng.choice(_list_entities(world))
    title = f"{entity} (edition {rng.randint(1, 6)})"
    page = DocumentBuilder(rng.choice((FileFormat.MD, FileFormat.HTML)), title)
    page.add_paragraph(
        [DocumentLine("This edition is superseded: the current register has a newer page on the same subject.")]
    )
    page.add_paragraph([DocumentLine(rng.choice(OPENINGS[world.kinds[entity]]).format(s=entity))])
    page.add_paragraph(_write_statements(world, entity, rng.randint(2, 3), rng))
    path = f"older-editions/{_slugify(entity)}-{index + 1}.{page.file_format}"
    return WorldDocument(number, path, title, Authority.EDITION, page.build_text(), tuple(page.statements))


def _write_letter(world: World, number: int, index: int, rng: Random) -> WorldDocument:
    title = f"Letter {index + 1}"
    page = DocumentBuilder(FileFormat.TXT, title)
    page.add_paragraph([DocumentLine(rng.choice(GREETINGS))])
    for entity in rng.sample(_list_entities(world), 2):
        page.add_paragraph(
            [DocumentLine("At the next table somebody swore to this."), *_write_statements(world, entity, 1, rng)]
        )
    page.add_paragraph([*_draw_asides(world, rng, 1), DocumentLine(rng.choice(PARTINGS))])
    return WorldDocument(
        number, f"letters/letter-{index + 1}.txt", title, Authority.LETTER, page.build_text(), tuple(page.statements)
    )


def _write_directory(world: World, number: int, index: int, rng: Random) -> WorldDocument:
    kind = list(FOLDERS)[index % len(FOLDERS)]
    among = world.members[kind]
    first = index // len(FOLDERS) * MAX_DIRECTORY_ENTRIES % len(among)
    title = f"Directory of {FOLDERS[kind]}, sheet {index // len(FOLDERS) + 1}"
    page = DocumentBuilder(rng.choice((FileFormat.MD, FileFormat.HTML)), title)
    page.add_paragraph([DocumentLine("A sheet of the current register, in no particular order.")])
    for entity in among[first : first + MAX_DIRECTORY_ENTRIES]:
        page.add_heading(entity)
        known = [
            (r, v) for r in RELATIONS_BY_KIND[kind] if (v := world.find_values(r.name, entity)) and not r.multi_valued
        ]
        page.add_rows([_build_entry(r, entity, v) for r, v in known] or [DocumentLine("Nothing is recorded.")])
    path = f"directories/{FOLDERS[kind]}-{index // len(FOLDERS) + 1}.{page.file_format}"
    return WorldDocument(number, path, title, Authority.REGISTER, page.build_text(), tuple(page.statements))


def _write_statements(world: World, entity: str, count: int, rng: Random) -> list[DocumentLine]:
    """Write `count` statements about an entity, some of them false."""
    relations = [r for r in RELATIONS_BY_KIND[world.kinds[entity]] if not r.multi_valued]
    claims: list[DocumentLine] = []
    for relation in rng.sample(relations, min(count, len(relations))):
        truth = world.find_values(relation.name, entity)
        values = (
            truth
            if truth and rng.random() >= FALSE_STATEMENT_PROBABILITY
            else (draw_value(relation.value, world.members, rng),)
        )
        claims.append(_build_sentence(relation, entity, values, values == truth, rng))
    return claims


def _build_sentence(relation: Relation, entity: str, values: Sequence[str], true: bool, rng: Random) -> DocumentLine:
    wording = rng.choice(STATEMENTS[relation.name]) if values else UNRECORDED[relation.name]
    return DocumentLine(wording.format(s=entity, v=_join_values(values)), relation.name, entity, true)


def _build_entry(relation: Relation, entity: str, values: Sequence[str]) -> DocumentLine:
    return DocumentLine(
        f"{RELATION_LABELS[relation.name]}: {_join_values(values) or 'not recorded'}", relation.name, entity, True
    )


def _draw_asides(world: World, rng: Random, count: int) -> list[DocumentLine]:
    return [DocumentLine(rng.choice(ASIDES).format(o=rng.choice(_list_entities(world)))) for _ in range(count)]


def _join_values(values: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def _slugify(name: str) -> str:
    return name.lower().replace(" ", "-")
