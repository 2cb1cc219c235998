"""The fencing condition: SQL that decides whether a claim may write to its run.

Every statement of a claim that writes contains the condition, or follows such a statement in the
same transaction, which then holds the row's lock. No clock is involved: after its lease has
expired, a claim can still write until another worker claims the run.
"""

from typing import Any

from offing.core.run import FencingToken

OWNS_RUN = "id = %(run)s and fence = %(fence)s and epoch = %(epoch)s and status = 'running'"
"""True if the claim and its epoch are the latest of the run and the run is being executed."""

LOCK_OWNED_RUN = f"select 1 from run where {OWNS_RUN} for share"
"""For statements that do not update the run: a new claim or epoch waits until their transaction
ends.
"""


def fence_parameters(fence: FencingToken) -> dict[str, Any]:
    """Return the parameters of `OWNS_RUN`."""
    return {"run": fence.run_id, "fence": fence.number, "epoch": fence.epoch}
