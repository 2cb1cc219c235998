"""Names of worlds: `train-12@500` is the training world with seed 12 and 500 documents.

The module defines the sizes, the splits, the options that make a world harder, and the syntax of names.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from offing.core.errors import InvalidInput


class Split(StrEnum):
    TRAIN = "train"
    HELDOUT = "heldout"
    """Shares no entity with any training world, and so no fact, no document and no question text.

    The compact format has no names, so there most questions of a held-out world also occur in
    training worlds.
    """


class WorldOption(StrEnum):
    """What makes a world harder. The facts, documents and questions of a world are the same with any options."""

    KEY = "key"
    """The tools that answer a relation depend on the entity's shelf, which is a look-up of its own."""
    REFERRAL = "referral"
    """Two tools share each relation. Which of them answers depends on the entity; the other finds nothing."""
    NOISE = "noise"
    """Three tools answer each relation, and one of them may be wrong. A value counts if two tools agree on it."""
    OUTAGE = "outage"
    """Three calls in ten fail. A repeated call may succeed."""


SIZES = {"tiny": 50, "small": 500, "medium": 5_000, "large": 50_000}
MIN_DOCUMENTS, MAX_DOCUMENTS = 50, 50_000
MAX_SEED = 2**31 - 1

WORLD_NAME_PATTERN = re.compile(
    r"(?P<head>[a-z]+)-(?P<seed>[0-9]{1,10})(?:@(?P<size>[a-z]+|[0-9]{1,6}))?(?P<options>(?:\+[a-z]+)*)"
)

WORLD_NAME_HELP = (
    "Write SPLIT-SEED@DOCUMENTS, such as train-12@500 or heldout-3@small, or SIZE-SEED for training, such as small-7. "
    f"Options follow, such as train-12@500+key: {', '.join(WorldOption)}"
)


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """The parameters that determine a world."""

    split: Split
    seed: int
    documents: int
    options: tuple[WorldOption, ...] = ()
    """In the order of `WorldOption`, each once."""

    def __str__(self) -> str:
        return f"{self.base}{''.join(f'+{option}' for option in self.options)}"

    @property
    def base(self) -> str:
        """The name without options, from which facts, documents and questions are derived."""
        return f"{self.split}-{self.seed}@{self.documents}"


def parse_world_name(text: str) -> WorldSpec:
    """Parse the name of a world. Raises `InvalidInput` with the reason if it is invalid."""
    match = WORLD_NAME_PATTERN.fullmatch(text.strip())
    if match is None:
        raise InvalidInput("world", f"{text[:60]!r} names no world", WORLD_NAME_HELP)
    head, seed, size, options = match["head"], int(match["seed"]), match["size"], _parse_options(match["options"])
    if seed > MAX_SEED:
        raise InvalidInput("world", f"Seed {seed} is too large", f"Take one up to {MAX_SEED}")
    if head in SIZES and size is None:
        return WorldSpec(Split.TRAIN, seed, SIZES[head], options)
    if head not in set(Split):
        raise InvalidInput("world", f"{head!r} is neither a split nor a size", WORLD_NAME_HELP)
    return WorldSpec(Split(head), seed, _parse_size(size or "small"), options)


def _parse_options(text: str) -> tuple[WorldOption, ...]:
    """Parse options such as `+key+outage`."""
    names = text.split("+")[1:]
    if unknown := [name for name in names if name not in set(WorldOption)]:
        raise InvalidInput("world", f"A world has no option {unknown[0][:40]!r}", f"Take {', '.join(WorldOption)}")
    if len(set(names)) < len(names):
        raise InvalidInput("world", f"An option is repeated in {text[:60]!r}", "Name each option once")
    if {WorldOption.REFERRAL, WorldOption.NOISE} <= set(names):
        raise InvalidInput("world", "A world has either referral or noise", "Leave one of the two out")
    return tuple(option for option in WorldOption if option in names)


def _parse_size(size: str) -> int:
    if size in SIZES:
        return SIZES[size]
    if not size.isdecimal() or not MIN_DOCUMENTS <= int(size) <= MAX_DOCUMENTS:
        known = ", ".join(SIZES)
        raise InvalidInput(
            "world", f"A world has no size {size!r}", f"Take {MIN_DOCUMENTS} to {MAX_DOCUMENTS} documents, or {known}"
        )
    return int(size)
