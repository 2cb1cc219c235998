"""The questions of a run for training and evaluation: synthetic worlds and the number of look-ups per question."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from offing_world.tasks import WorldTask, generate_tasks

WORLDS = 8
"""Number of training worlds that a stream of questions uses in turn."""


@dataclass(frozen=True, slots=True)
class Questions:
    hops: tuple[int, int] = (1, 3)
    """Minimum and maximum number of look-ups."""
    kinds: tuple[str, ...] = ()
    """Empty means all kinds."""
    documents: int = 500
    """Number of documents of a world."""

    def drawn(self, count: int, seed: int) -> list[WorldTask]:
        """Draw this number of training questions, from several worlds in turn. Other seeds use other worlds."""
        streams = [self._of(f"train-{WORLDS * seed + n + 1}@{self.documents}", seed) for n in range(WORLDS)]
        rounds = zip(*streams, strict=False)
        return list(islice((task for several in rounds for task in several), count))

    def held_out(self, count: int) -> list[WorldTask]:
        """Return the evaluation questions. They are always the same, from a world that is not used for training."""
        return list(islice(self._of(f"heldout-1@{self.documents}", 0), count))

    def _of(self, world: str, seed: int) -> Iterator[WorldTask]:
        return generate_tasks(world, hops=self.hops, kinds=self.kinds or None, seed=seed)
