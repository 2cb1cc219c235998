"""What the flow can do without: how it is tried with and without its options."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Config:
    """Options of one variant."""

    judge: bool = True
    """Each observation of its own is judged, and what does not help is set aside."""
    team: bool = True
    """Parts are given to child runs where the run may have any. False: they are worked on one after the other."""
    review: bool = False
    """A person is shown the plan, and may edit it or ask for another one, before anything is looked up."""
