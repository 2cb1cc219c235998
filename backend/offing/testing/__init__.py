"""The test kit of graph authors: a graph runs in process, on scripted answers, a virtual clock and documents in memory.

It keeps the rules of the platform that a graph can notice: steps in order, calls read back after a loss, the argument
schemas and the policy of tools, budgets, checkpoints of plain data, and the check of every quote.
"""

from offing.core.question import Answer
from offing.testing.clock import VirtualClock
from offing.testing.faults import Differs, survives
from offing.testing.recorded import Diverged, Recording, replayed
from offing.testing.rehearsal import Rehearsal, rehearse
from offing.testing.scene import OutOfAnswers, Scene
from offing.testing.stage import Lost

__all__ = [
    "Answer",
    "Differs",
    "Diverged",
    "Lost",
    "OutOfAnswers",
    "Recording",
    "Rehearsal",
    "Scene",
    "VirtualClock",
    "rehearse",
    "replayed",
    "survives",
]
