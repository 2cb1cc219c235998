"""How a world is named: `train-12@500` is the training world of seed 12 with 500 documents.

The only home of sizes, splits and their spelling.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from offing.core.errors import InvalidInput


class Split(StrEnum):
    TRAIN = "train"
    HELDOUT = "heldout"
    """Shares no entity, and so no fact, document or text of a question, with any training world. In the compact form,
    which has no names, most questions of a held-out world occur in training worlds."""


SIZES = {"tiny": 50, "small": 500, "medium": 5_000, "large": 50_000}
FEWEST, MOST = 50, 50_000
LARGEST_SEED = 2**31 - 1

SPELLING = re.compile(r"(?P<head>[a-z]+)-(?P<seed>[0-9]{1,10})(?:@(?P<size>[a-z]+|[0-9]{1,6}))?")

REMEDY = (
    "Write SPLIT-SEED@DOCUMENTS, such as train-12@500 or heldout-3@small, or SIZE-SEED for training, such as small-7"
)


@dataclass(frozen=True, slots=True)
class Spec:
    """Everything that a world is made from."""

    split: Split
    seed: int
    documents: int

    def __str__(self) -> str:
        return f"{self.split}-{self.seed}@{self.documents}"


def parse(text: str) -> Spec:
    """Reads a world's name. Raises InvalidInput that says what is wrong with it."""
    match = SPELLING.fullmatch(text.strip())
    if match is None:
        raise InvalidInput("world", f"{text[:60]!r} names no world", REMEDY)
    head, seed, size = match["head"], int(match["seed"]), match["size"]
    if seed > LARGEST_SEED:
        raise InvalidInput("world", f"Seed {seed} is too large", f"Take one up to {LARGEST_SEED}")
    if head in SIZES and size is None:
        return Spec(Split.TRAIN, seed, SIZES[head])
    if head not in set(Split):
        raise InvalidInput("world", f"{head!r} is neither a split nor a size", REMEDY)
    return Spec(Split(head), seed, _documents(size or "small"))


def _documents(size: str) -> int:
    if size in SIZES:
        return SIZES[size]
    if not size.isdecimal() or not FEWEST <= int(size) <= MOST:
        known = ", ".join(SIZES)
        raise InvalidInput("world", f"A world has no size {size!r}", f"Take {FEWEST} to {MOST} documents, or {known}")
    return int(size)
