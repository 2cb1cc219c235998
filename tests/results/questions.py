"""The questions of a run for training and evaluation: synthetic worlds and the number of look-ups per question.

Training and evaluation share no composition: a fifth of the compact forms with two or more relations, by their hash, is
never trained, and only these are evaluated. Questions of one look-up have one relation and therefore occur in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from offing_world.compositions import Compositions
from offing_world.tasks import WorldTask, generate_tasks

WORLDS = 8
"""Number of training worlds that a stream of questions uses in turn."""


@dataclass(frozen=True, slots=True)
class Questions:
    hops: tuple[int, int] = (1, 3)
    """Minimum and maximum number of look-ups of training questions."""
    kinds: tuple[str, ...] = ()
    """Empty means all kinds."""
    documents: int = 500
    """Number of documents of a world."""
    tested_hops: tuple[int, int] | None = None
    """Minimum and maximum number of look-ups of evaluation questions, all equally often. `None` means `hops`."""
    options: str = ""
    """The options of the worlds as their names have them, such as `+key`. Empty means none."""

    def drawn(self, count: int, seed: int) -> list[WorldTask]:
        """Draw this number of training questions, from several worlds in turn. Other seeds use other worlds."""
        streams = [
            self._of(f"train-{WORLDS * seed + n + 1}", self.hops, Compositions.TRAINED, seed) for n in range(WORLDS)
        ]
        rounds = zip(*streams, strict=False)
        return list(islice((task for several in rounds for task in several), count))

    def held_out(self, count: int) -> list[WorldTask]:
        """Return the evaluation questions. They are always the same, from a world that is not used for training."""
        least, most = self.tested_hops or self.hops
        numbers = range(least, most + 1)
        shares = [count // len(numbers) + (nth < count % len(numbers)) for nth in range(len(numbers))]
        return [
            task for hops, share in zip(numbers, shares, strict=True) for task in islice(self.of_length(hops), share)
        ]

    def of_length(self, hops: int) -> Iterator[WorldTask]:
        """Yield evaluation questions of this many look-ups."""
        part = Compositions.HELD_OUT if hops > 1 else Compositions.ALL
        return self._of("heldout-1", (hops, hops), part, 0)

    def _of(self, world: str, hops: tuple[int, int], part: Compositions, seed: int) -> Iterator[WorldTask]:
        name = f"{world}@{self.documents}{self.options}"
        return generate_tasks(name, hops=hops, kinds=self.kinds or None, seed=seed, compositions=part)
