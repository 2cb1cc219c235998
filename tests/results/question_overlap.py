"""How many held-out questions also occur in training, as text and in the compact form that a planner reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offing_world.compact_notation import render_compact_question
from offing_world.tasks import WorldTask

if TYPE_CHECKING:
    from tests.results.training import Course


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of questions."""

    held_out: int
    trained: int
    """Training questions, each drawn question counted."""
    texts: int
    """Held-out questions whose text occurs in training."""
    words: int
    """Held-out questions whose compact form occurs in training."""
    forms: int
    """Different compact forms among the held-out questions."""
    longer: int = 0
    """Held-out questions of two or more look-ups."""
    longer_words: int = 0
    """Those of them whose compact form occurs in training."""

    @property
    def share(self) -> float:
        """Share of the held-out questions whose compact form occurs in training, from 0 to 1."""
        return self.words / self.held_out

    @property
    def longer_share(self) -> float:
        """The same among the questions of two or more look-ups. 0 if there are none."""
        return self.longer_words / self.longer if self.longer else 0.0


def overlap_of(held_out: Sequence[WorldTask], trained: Iterable[WorldTask]) -> Overlap:
    texts, words, count = set[str](), set[str](), 0
    for task in trained:
        count += 1
        texts.add(task.question)
        words.add(render_compact_question(task.question))
    met = [render_compact_question(task.question) for task in held_out]
    return Overlap(
        len(held_out),
        count,
        sum(task.question in texts for task in held_out),
        sum(w in words for w in met),
        len({*met}),
        sum(task.hops > 1 for task in held_out),
        sum(task.hops > 1 and form in words for task, form in zip(held_out, met, strict=True)),
    )


def course_overlap(course: "Course", seed: int = 0) -> Overlap:
    """Compare the questions of every training step with those of the evaluations."""
    questions = course.questions
    return overlap_of(questions.held_out(course.held_out), questions.drawn(course.steps * course.tasks, seed))
