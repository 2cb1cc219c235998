"""Who may write to a run, as a condition on its row: the only home of it.

Every statement by which a claim writes carries it, or follows one that does in the same transaction, which holds the
row's lock from then on. No clock is part of it: a lease that has passed keeps nobody out whose run nobody has claimed.
"""

from typing import Any

from offing.core.run import Fence

OURS = "id = %(run)s and fence = %(fence)s and epoch = %(epoch)s and status = 'running'"
"""The claim and its epoch are the run's latest, and it works."""

SHARED = f"select 1 from run where {OURS} for share"
"""For statements that do not touch the run: a claim, or a new epoch, waits until their transaction is over."""


def ours(fence: Fence) -> dict[str, Any]:
    """Parameters of `OURS`."""
    return {"run": fence.run, "fence": fence.number, "epoch": fence.epoch}
