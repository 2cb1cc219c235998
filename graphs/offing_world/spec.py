"""Names of worlds: `train-12@500` is the training world with seed 12 and 500 documents.

The module defines the sizes, the splits and the syntax of names.
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


SIZES = {"tiny": 50, "small": 500, "medium": 5_000, "large": 50_000}
MIN_DOCUMENTS, MAX_DOCUMENTS = 50, 50_000
MAX_SEED = 2**31 - 1

WORLD_NAME_PATTERN = re.compile(r"(?P<head>[a-z]+)-(?P<seed>[0-9]{1,10})(?:@(?P<size>[a-z]+|[0-9]{1,6}))?")

WORLD_NAME_HELP = (
    "Write SPLIT-SEED@DOCUMENTS, such as train-12@500 or heldout-3@small, or SIZE-SEED for training, such as small-7"
)


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """The parameters that determine a world."""

    split: Split
    seed: int
    documents: int

    def __str__(self) -> str:
        return f"{self.split}-{self.seed}@{self.documents}"


def parse_world_name(text: str) -> WorldSpec:
    """Parse the name of a world. Raises `InvalidInput` with the reason if it is invalid."""
    match = WORLD_NAME_PATTERN.fullmatch(text.strip())
    if match is None:
        raise InvalidInput("world", f"{text[:60]!r} names no world", WORLD_NAME_HELP)
    head, seed, size = match["head"], int(match["seed"]), match["size"]
    if seed > MAX_SEED:
        raise InvalidInput("world", f"Seed {seed} is too large", f"Take one up to {MAX_SEED}")
    if head in SIZES and size is None:
        return WorldSpec(Split.TRAIN, seed, SIZES[head])
    if head not in set(Split):
        raise InvalidInput("world", f"{head!r} is neither a split nor a size", WORLD_NAME_HELP)
    return WorldSpec(Split(head), seed, _parse_size(size or "small"))


def _parse_size(size: str) -> int:
    if size in SIZES:
        return SIZES[size]
    if not size.isdecimal() or not MIN_DOCUMENTS <= int(size) <= MAX_DOCUMENTS:
        known = ", ".join(SIZES)
        raise InvalidInput(
            "world", f"A world has no size {size!r}", f"Take {MIN_DOCUMENTS} to {MAX_DOCUMENTS} documents, or {known}"
        )
    return int(size)
