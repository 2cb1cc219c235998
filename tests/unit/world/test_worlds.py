"""Worlds come from their names alone, and training and held-out worlds share no name."""

from hashlib import sha256

import pytest

from offing.core.errors import InvalidInput
from offing_world.documents import iter_documents
from offing_world.fact_lookup import look_up
from offing_world.facts import INVERSES, MAX_VALUES, World, world_from_name
from offing_world.names import assign_split
from offing_world.semantics import RELATION_TABLE, RELATIONS, RELATIONS_BY_NAME, TOOLS, TOOLS_BY_RELATION
from offing_world.spec import Split, WorldSpec, parse_world_name
from offing_world.tasks import generate_tasks

SEEDS = range(20)


def everything(split: Split) -> dict[str, set[str]]:
    """What many worlds of a split are made of."""
    results: dict[str, set[str]] = {
        "entities": set(),
        "words": set(),
        "facts": set(),
        "texts": set(),
        "questions": set(),
    }
    for seed in SEEDS:
        world = world_from_name(f"{split}-{seed}@100")
        results["entities"] |= set(world.kinds)
        results["words"] |= {word for entity in world.kinds for word in entity.split()}
        results["facts"] |= {f"{r} {e} {v}" for (r, e), values in world.facts.items() for v in values}
        results["texts"] |= {d.text for d in iter_documents(str(world.spec)) if d.number}
        results["questions"] |= {t.question for t in generate_tasks(str(world.spec), count=60)}
    return results


def test_held_out_worlds_share_no_entity_fact_document_or_text_of_a_question_with_training_worlds() -> None:
    train, heldout = everything(Split.TRAIN), everything(Split.HELDOUT)
    for sort in train:
        assert len(train[sort]) > 500
        assert not train[sort] & heldout[sort], sort


def test_every_word_of_a_name_is_of_its_worlds_split_so_that_no_world_at_all_can_share_one() -> None:
    for split in Split:
        for seed in SEEDS:
            words = {w for entity in world_from_name(f"{split}-{seed}@100").kinds for w in entity.split()}
            assert {assign_split(word) for word in words} == {split}


def test_held_out_worlds_share_relations_and_alphabet_with_training_worlds() -> None:
    def letters(world: World) -> set[str]:
        return set("".join(world.kinds).lower())

    train, heldout = world_from_name("train-1@500"), world_from_name("heldout-1@500")
    assert letters(train) == letters(heldout)
    assert {r for r, _ in train.facts} == {r for r, _ in heldout.facts} == set(RELATIONS)


def test_the_same_name_gives_the_same_world_and_another_seed_another() -> None:
    from offing_world.facts import _build_world  # pyright: ignore[reportPrivateUsage]

    again = _build_world.__wrapped__(parse_world_name("train-7@500"))
    assert world_from_name("small-7") is world_from_name("train-7@small")
    assert again.facts == world_from_name("small-7").facts
    assert list(again.kinds.items()) == list(world_from_name("small-7").kinds.items())
    assert not set(again.facts) & set(world_from_name("small-8").facts)


def test_a_world_of_a_name_never_changes() -> None:
    """Rollouts of other days were made in it: a change of the generator changes what all stored tasks mean."""
    world = world_from_name("train-1@50")
    messages = [
        look_up(world, tool, r.name, e) for r in RELATION_TABLE for e in world.members[r.subject] for tool in TOOLS
    ]
    created = (
        list(world.facts.items()),
        [(s.values, s.closed) for s in messages],
        [d.text for d in iter_documents("train-1@50")],
        [t.question for t in generate_tasks("train-1@50", count=50)],
    )
    assert [sha256(repr(part).encode()).hexdigest()[:16] for part in created] == PINNED


PINNED = ["f74f7c1434e02f57", "99146469c90d2e5d", "acf8059b0e68a4dc", "ab998568bc2830da"]


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("small-7", WorldSpec(Split.TRAIN, 7, 500)),
        ("train-12@500", WorldSpec(Split.TRAIN, 12, 500)),
        ("heldout-3@large", WorldSpec(Split.HELDOUT, 3, 50_000)),
        ("heldout-3", WorldSpec(Split.HELDOUT, 3, 500)),
        ("train-0@50", WorldSpec(Split.TRAIN, 0, 50)),
    ],
)
def test_a_world_is_named_by_split_or_size_and_seed(name: str, spec: WorldSpec) -> None:
    assert parse_world_name(name) == spec
    assert parse_world_name(str(spec)) == spec


@pytest.mark.parametrize(
    "name",
    ["", "7", "small", "huge-7", "small-7@50", "train-1@49", "train-1@50001", "train-1@vast", "train-99999999999"],
)
def test_what_names_no_world_is_rejected_with_the_remedy(name: str) -> None:
    with pytest.raises(InvalidInput, match="world: "):
        parse_world_name(name)


def test_facts_have_entities_and_numbers_of_the_kinds_that_their_relations_say() -> None:
    world = world_from_name("train-2@500")
    for (relation, entity), values in world.facts.items():
        about = RELATIONS_BY_NAME[relation]
        assert world.kinds[entity] is about.subject
        assert values
        assert len(values) <= (MAX_VALUES if about.multi_valued else 1)
        for value in values:
            assert value.isdecimal() if about.is_numeric else world.kinds[value] is about.value


def test_lists_are_the_other_side_of_their_relations() -> None:
    world = world_from_name("train-2@500")
    for relation, inverse in INVERSES.items():
        forth = {(e, v) for (r, e), values in world.facts.items() if r == relation for v in values}
        back = {(v, e) for (r, e), values in world.facts.items() if r == inverse for v in values}
        assert forth == back


def test_every_relation_is_answered_by_one_or_two_tools() -> None:
    assert set(TOOLS_BY_RELATION) == set(RELATIONS)
    assert all(1 <= len(tools) <= 2 and set(tools) <= set(TOOLS) for tools in TOOLS_BY_RELATION.values())
    assert {tool for tools in TOOLS_BY_RELATION.values() for tool in tools} == set(TOOLS)


def test_a_wrong_tool_gives_nothing_every_second_time_and_never_the_truth() -> None:
    world = world_from_name("train-2@500")
    nothing = misled = 0
    for relation in RELATION_TABLE:
        for entity in world.members[relation.subject]:
            truth = world.find_values(relation.name, entity)
            for tool in set(TOOLS) - set(TOOLS_BY_RELATION[relation.name]):
                text = look_up(world, tool, relation.name, entity)
                assert text == look_up(world, tool, relation.name, entity)
                assert not set(text.values) & set(truth)
                assert text.closed is bool(text.values)
                nothing, misled = nothing + (not text.values), misled + bool(text.values)
    assert 0.48 < nothing / (nothing + misled) < 0.52


def test_a_right_tool_without_a_fact_says_that_there_is_none() -> None:
    world = world_from_name("train-2@500")
    entity = next(e for e in world.members[RELATIONS_BY_NAME["home"].subject] if not world.find_values("home", e))
    text = look_up(world, TOOLS_BY_RELATION["home"][0], "home", entity)
    assert (text.values, text.closed) == ((), True)
