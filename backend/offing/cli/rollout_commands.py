"""Commands `offing rollouts` and `offing policy` with their options.

The work is imported when a command is called.
"""

from pathlib import Path
from typing import Literal

from cyclopts import App

from offing.cli.options import CollectOptions, EvaluateOptions, Json, PromoteOptions

rollouts = App(name="rollouts", help="Collect rollouts; list, show and cancel rollout batches.")
policy = App(name="policy", help="Policy versions: weights with their hashes, lineage and state.")


@rollouts.command(name="collect")
def collect_rollouts(options: CollectOptions) -> int:
    """Collect rollouts: one group of runs per task under pinned policy versions, scored when the runs end."""
    from offing.cli.rollouts import run_collect

    return run_collect(options)


@rollouts.command(name="list")
def list_batches(*, limit: int = 20, json: Json = False) -> int:
    """List rollout batches, newest first."""
    from offing.cli.rollouts import list_batches as listed

    return listed(limit, json)


@rollouts.command(name="show")
def show_batch(batch: str, *, json: Json = False) -> int:
    """Show the progress of a rollout batch. BATCH is an id or the last characters of an id."""
    from offing.cli.rollouts import show_batch as show

    return show(batch, json)


@rollouts.command(name="cancel")
def cancel_batch(batch: str) -> int:
    """Cancel all runs of a rollout batch. Finalized rollouts are kept."""
    from offing.cli.rollouts import cancel_batch as cancelled

    return cancelled(batch)


@policy.command(name="add")
def add_policy(
    name: str,
    folder: Path,
    *,
    kind: Literal["full", "lora"] | None = None,
    parent: str = "",
    base_model: str = "",
    json: Json = False,
) -> int:
    """Register a folder with weights as the next version of a policy.

    If the same files are registered, their version is returned.

    Parameters
    ----------
    kind
        `full` or `lora`. Default: detected from the folder.
    parent
        NAME@VERSION that it was trained from. An adapter needs it.
    base_model
        Name of the original model, for display.
    json
        Print only JSON on standard output.
    """
    from offing.cli.policy import add_version

    return add_version(name, folder, kind, parent, base_model, json)


@policy.command(name="list")
def list_policies(name: str | None = None, *, limit: int = 50, json: Json = False) -> int:
    """List policy versions, newest first."""
    from offing.cli.policy import list_versions

    return list_versions(name, limit, json)


@policy.command(name="set-state")
def set_policy_state(policy: str, state: Literal["candidate", "canary", "active", "retired", "blocked"]) -> int:
    """Set the state of POLICY (NAME@VERSION). One version per name is active. `blocked` cannot be undone."""
    from offing.cli.policy import set_state

    return set_state(policy, state)


@policy.command(name="promote")
def promote_policy(options: PromoteOptions) -> int:
    """Make POLICY (NAME@VERSION) the active version, if it is not worse than the present active version."""
    from offing.cli.promotion import promote_version

    return promote_version(options)


@policy.command(name="evaluate")
def evaluate_policy(options: EvaluateOptions) -> int:
    """Evaluate POLICY (NAME@VERSION) on stored tasks, and store the results for `offing policy promote`."""
    from offing.cli.promotion import evaluate_version

    return evaluate_version(options)


@policy.command(name="canary")
def canary_policy(policy: str, *, share: float = 0.1) -> int:
    """Start a canary: let POLICY (NAME@VERSION) answer a share of new runs.

    It answers runs that name the policy without a version.
    """
    from offing.cli.promotion import start_canary

    return start_canary(policy, share)


@policy.command(name="rollback")
def roll_back_policy(name: str) -> int:
    """Withdraw the canary of NAME. Without a canary, make the previous active version active again."""
    from offing.cli.promotion import roll_back

    return roll_back(name)
