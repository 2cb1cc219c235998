"""Which questions a run trains on and is measured by: synthetic worlds, and how many look-ups a question takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from offing_world.tasks import WorldTask, generate_tasks

WORLDS = 8
"""Of a stream of questions, in turn."""


@dataclass(frozen=True, slots=True)
class Questions:
    hops: tuple[int, int] = (1, 3)
    """Fewest and most look-ups."""
    kinds: tuple[str, ...] = ()
    """Empty: all."""
    documents: int = 500
    """Of a world."""

    def drawn(self, count: int, seed: int) -> list[WorldTask]:
        """So many for training, from several worlds in turn; other seeds have other worlds."""
        streams = [self._of(f"train-{WORLDS * seed + n + 1}@{self.documents}", seed) for n in range(WORLDS)]
        rounds = zip(*streams, strict=False)
        return list(islice((task for several in rounds for task in several), count))

    def held_out(self, count: int) -> list[WorldTask]:
        """The same ones always, of a world that nobody trains on."""
        return list(islice(self._of(f"heldout-1@{self.documents}", 0), count))

    def _of(self, world: str, seed: int) -> Iterator[WorldTask]:
        return generate_tasks(world, hops=self.hops, kinds=self.kinds or None, seed=seed)
