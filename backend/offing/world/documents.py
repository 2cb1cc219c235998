"""A world's documents: readable prose of varied form, each made on its own, so that 50,000 can stream.

The only home of their order, paths, forms, and of where in a text a fact stands. The current register tells the truth;
older editions and letters also tell what is not true, and what they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from random import Random

from offing.world.facts import KEPT_WORLDS, Plan, World, drawn, plan, world_of
from offing.world.pages import Form, Line, Page, Stated
from offing.world.phrases import ASIDES, GREETINGS, LABELS, OPENINGS, PARTINGS, RULE, STATEMENTS, UNRECORDED
from offing.world.semantics import RELATION_TABLE, Kind, Relation

FOLDERS = {Kind.PERSON: "people", Kind.TOWN: "towns", Kind.GUILD: "guilds", Kind.BOOK: "books"}
RELATIONS_OF = {kind: tuple(r for r in RELATION_TABLE if r.subject == kind) for kind in FOLDERS}
ENTRIES = 8
"""Towns or persons of one directory."""
WRONG = 0.6
"""How often an older edition or a letter says something else than the register, for each thing that it says."""


class Authority(StrEnum):
    """Which paper is right where papers disagree, best first."""

    REGISTER = "register"
    EDITION = "older edition"
    LETTER = "letter"


@dataclass(frozen=True, slots=True)
class Document:
    number: int
    """From 0, without gaps."""
    path: str
    """Within the world; the ending says its form: md, txt or html."""
    title: str
    authority: Authority
    text: str
    statements: tuple[Stated, ...]


def documents(spec: str) -> Iterator[Document]:
    """All documents of a world in order, one at a time. Raises InvalidInput for what names no world."""
    world = world_of(spec)
    return (document(world, number) for number in range(world.spec.documents))


def document(world: World, number: int) -> Document:
    """The document with this number. Raises IndexError beyond the last."""
    if not 0 <= number < world.spec.documents:
        raise IndexError(number)
    if number == 0:
        return Document(0, "about-this-archive.md", "About this archive", Authority.REGISTER, RULE, ())
    rng = Random(f"document {world.spec} {number}")
    index = number - 1
    for write, total in _sorts(plan(world.spec.documents)):
        if index < total:
            return write(world, number, index, rng)
        index -= total
    raise AssertionError("the plan adds up to the number of documents")


def stated(world: World, relation: str, entity: str) -> tuple[Document, int, int]:
    """The register's page that states a relation of an entity, or that it is not recorded, and the stretch there.

    Raises LookupError for a relation that such an entity cannot have.
    """
    page = document(world, _numbers(world)[entity])
    for found in page.statements:
        if (found.relation, found.entity) == (relation, entity):
            return page, found.start, found.end
    raise LookupError(f"{page.path} states no {relation} of {entity}")


Writer = Callable[[World, int, int, Random], Document]
"""Writes the document with a number, which is the `index`th of its sort."""


def _sorts(made: Plan) -> tuple[tuple[Writer, int], ...]:
    return (
        (_article, made.articles),
        (_edition, made.editions),
        (_letter, made.letters),
        (_directory, made.directories),
    )


@lru_cache(maxsize=KEPT_WORLDS)
def _entities(world: World) -> tuple[str, ...]:
    return tuple(world.kinds)


@lru_cache(maxsize=KEPT_WORLDS)
def _numbers(world: World) -> Mapping[str, int]:
    """The document that is each entity's page in the register."""
    return {entity: index + 1 for index, entity in enumerate(_entities(world))}


def _article(world: World, number: int, index: int, rng: Random) -> Document:
    entity = _entities(world)[index]
    kind = world.kinds[entity]
    page = Page(rng.choices(list(Form), (45, 25, 30))[0], entity)
    facts = [(r, world.values(r.name, entity)) for r in RELATIONS_OF[kind]]
    rng.shuffle(facts)
    in_prose = len(facts) if rng.random() < 0.5 else rng.randint(0, len(facts) - 1)
    page.paragraph([Line(rng.choice(OPENINGS[kind]).format(s=entity)), *_asides(world, rng, 1)])
    page.paragraph([_sentence(r, entity, v, True, rng) for r, v in facts[:in_prose]])
    page.paragraph(_asides(world, rng, rng.randint(0, 2)))
    if facts[in_prose:]:
        page.heading("Record")
        page.rows([_entry(r, entity, v) for r, v in facts[in_prose:]])
    path = f"{FOLDERS[kind]}/{_slug(entity)}.{page.form}"
    return Document(number, path, entity, Authority.REGISTER, page.done(), tuple(page.statements))


def _edition(world: World, number: int, index: int, rng: Random) -> Document:
    entity = rng.choice(_entities(world))
    title = f"{entity} (edition {rng.randint(1, 6)})"
    page = Page(rng.choice((Form.MD, Form.HTML)), title)
    page.paragraph([Line("This edition is superseded: the current register has a newer page on the same subject.")])
    page.paragraph([Line(rng.choice(OPENINGS[world.kinds[entity]]).format(s=entity))])
    page.paragraph(_claims(world, entity, rng.randint(2, 3), rng))
    path = f"older-editions/{_slug(entity)}-{index + 1}.{page.form}"
    return Document(number, path, title, Authority.EDITION, page.done(), tuple(page.statements))


def _letter(world: World, number: int, index: int, rng: Random) -> Document:
    title = f"Letter {index + 1}"
    page = Page(Form.TXT, title)
    page.paragraph([Line(rng.choice(GREETINGS))])
    for entity in rng.sample(_entities(world), 2):
        page.paragraph([Line("At the next table somebody swore to this."), *_claims(world, entity, 1, rng)])
    page.paragraph([*_asides(world, rng, 1), Line(rng.choice(PARTINGS))])
    return Document(
        number, f"letters/letter-{index + 1}.txt", title, Authority.LETTER, page.done(), tuple(page.statements)
    )


def _directory(world: World, number: int, index: int, rng: Random) -> Document:
    kind = list(FOLDERS)[index % len(FOLDERS)]
    among = world.members[kind]
    first = index // len(FOLDERS) * ENTRIES % len(among)
    title = f"Directory of {FOLDERS[kind]}, sheet {index // len(FOLDERS) + 1}"
    page = Page(rng.choice((Form.MD, Form.HTML)), title)
    page.paragraph([Line("A sheet of the current register, in no particular order.")])
    for entity in among[first : first + ENTRIES]:
        page.heading(entity)
        known = [(r, v) for r in RELATIONS_OF[kind] if (v := world.values(r.name, entity)) and not r.many]
        page.rows([_entry(r, entity, v) for r, v in known] or [Line("Nothing is recorded.")])
    path = f"directories/{FOLDERS[kind]}-{index // len(FOLDERS) + 1}.{page.form}"
    return Document(number, path, title, Authority.REGISTER, page.done(), tuple(page.statements))


def _claims(world: World, entity: str, number: int, rng: Random) -> list[Line]:
    """So many things said of an entity, some of them wrong."""
    relations = [r for r in RELATIONS_OF[world.kinds[entity]] if not r.many]
    claims: list[Line] = []
    for relation in rng.sample(relations, min(number, len(relations))):
        truth = world.values(relation.name, entity)
        said = truth if truth and rng.random() >= WRONG else (drawn(relation.value, world.members, rng),)
        claims.append(_sentence(relation, entity, said, said == truth, rng))
    return claims


def _sentence(relation: Relation, entity: str, values: Sequence[str], true: bool, rng: Random) -> Line:
    wording = rng.choice(STATEMENTS[relation.name]) if values else UNRECORDED[relation.name]
    return Line(wording.format(s=entity, v=_listed(values)), relation.name, entity, true)


def _entry(relation: Relation, entity: str, values: Sequence[str]) -> Line:
    return Line(f"{LABELS[relation.name]}: {_listed(values) or 'not recorded'}", relation.name, entity, True)


def _asides(world: World, rng: Random, number: int) -> list[Line]:
    return [Line(rng.choice(ASIDES).format(o=rng.choice(_entities(world)))) for _ in range(number)]


def _listed(values: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")
