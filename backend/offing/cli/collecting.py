"""The verbs that collect rollouts and know policies, and what they take. The work is imported when one is called."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

Json = Annotated[bool, Parameter(name="--json", negative="")]

Flag = Annotated[bool, Parameter(negative="")]

Paths = Annotated[tuple[Path, ...], Parameter(negative="")]

batch = App(name="batch", help="Batches of collected rollouts.")
policy = App(name="policy", help="Policy versions: weights with their hashes, lineage and state.")


def rollout(
    *,
    tasks: str,
    graph: str = "agentflow",
    count: int | None = None,
    hops: str = "1-4",
    kind: tuple[str, ...] = (),
    group_size: int = 8,
    policy: tuple[str, ...] = (),
    engine: tuple[str, ...] = (),
    turns: int = 12,
    tokens: int | None = None,
    usd: float | None = None,
    scorer: tuple[str, ...] = (),
    durability: Literal["exit", "sync"] | None = None,
    attempts: int = 3,
    seed: int = 0,
    dataset: str = "",
    name: str = "",
    tag: tuple[str, ...] = (),
    key: str | None = None,
    wait: Flag = False,
    path: Paths = (),
    json: Json = False,
) -> int:
    """Collect rollouts: a group of runs for each task, under pinned policies, scored when they end.

    Parameters
    ----------
    tasks
        A file with one JSON object a line, with `question`, `answers` and more; or `world:SPEC`.
    graph
        The graph that works on them.
    count
        Tasks at most; of a world, exactly as many, and 100 if left out.
    hops
        Of a world's questions: fewest and most look-ups.
    kind
        Of a world's questions. None: all kinds.
    group_size
        Runs of each task.
    policy
        `role=NAME@VERSION`: a registered policy version that answers a role; `planner+compact=…`: in that form.
    engine
        `role=engine` for other roles, such as `planner=rules:oracle`; or `all=…`.
    turns
        Turns of a run at most.
    tokens
        Tokens of a run at most.
    usd
        Money of a run at most.
    scorer
        `NAME`, `NAME=WEIGHT`, or `NAME=WEIGHT:{JSON options}`. None: exact_match, if every task has a reference.
    durability
        exit: written when a slice ends, and done again when it is lost. sync: written step by step. None: exit where
        the turns fit one slice.
    attempts
        Runs of a member at most; further ones follow an infrastructure error.
    seed
        The same seed and tasks give the same seeds of runs.
    dataset
        Name under which the tasks are stored. None: the file's, or the world's.
    name
        The batch's name.
    tag
        Kept with every group.
    key
        The same key and request make one batch, and complete one that was cut short.
    wait
        Return when all groups have ended.
    path
        A folder or a .py file with a graph that is not installed, or several.
    json
        Print only JSON on standard output.
    """
    from offing.cli.rollout import Wanted, run

    return run(
        Wanted(
            tasks, graph, count, hops, kind, group_size, policy, engine, turns, tokens, usd, scorer, durability,
            attempts, seed, dataset, name, tag, key, wait, path,
        ),
        json,
    )  # fmt: skip


@batch.command(name="list")
def list_batches(*, limit: int = 20, json: Json = False) -> int:
    """List batches, newest first."""
    from offing.cli.rollout import list_batches as listed

    return listed(limit, json)


@batch.command(name="show")
def show_batch(batch: str, *, json: Json = False) -> int:
    """Show how far a batch is. BATCH may be shortened to its last characters."""
    from offing.cli.rollout import show_batch as shown

    return shown(batch, json)


@batch.command(name="cancel")
def cancel_batch(batch: str) -> int:
    """End all runs of a batch; what was settled stays."""
    from offing.cli.rollout import cancel_batch as cancelled

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
    """Register a folder with weights as the next version of a policy. The same files keep their version.

    Parameters
    ----------
    kind
        full or lora. None: what the folder holds.
    parent
        NAME@VERSION that it was trained from; an adapter stands on it.
    base_model
        What it was made from, for people.
    json
        Print only JSON on standard output.
    """
    from offing.cli.policy import add

    return add(name, folder, kind, parent, base_model, json)


@policy.command(name="list")
def list_policies(name: str | None = None, *, limit: int = 50, json: Json = False) -> int:
    """List policy versions, newest first."""
    from offing.cli.policy import listed

    return listed(name, limit, json)


@policy.command(name="state")
def state_policy(policy: str, state: Literal["candidate", "canary", "active", "retired", "bad"]) -> int:
    """Move POLICY, which is NAME@VERSION, to another state. One version of a name is active; bad is for good."""
    from offing.cli.policy import change

    return change(policy, state)


@policy.command(name="promote")
def promote_policy(
    policy: str,
    *,
    dataset: str | None = None,
    greedy: Flag = False,
    margin: float = 0.0,
    confident: Flag = False,
    kl_ceiling: float | None = None,
    force: Flag = False,
    replica: tuple[str, ...] = (),
    json: Json = False,
) -> int:
    """Make POLICY, which is NAME@VERSION, the active one, if it does no worse than the one that is.

    Parameters
    ----------
    dataset
        Compare by evaluations on these tasks. None: the latest that both have.
    greedy
        Compare greedy evaluations only.
    margin
        How far below the active version its mean reward may lie.
    confident
        Judge by the lower end of the 95 % interval.
    kl_ceiling
        Nats a token that it may be from the policy it was trained from. None: any.
    force
        Whatever it is worth.
    replica
        Address of a vLLM server that has to load it first, such as `http://gpu-1:8000/v1`; several may be named.
    json
        Print only JSON on standard output.
    """
    from offing.cli.promotion import Gate, promote

    return promote(policy, Gate(dataset, greedy, margin, confident, kl_ceiling, force), replica, json)


@policy.command(name="evaluate")
def evaluate_policy(
    policy: str,
    *,
    dataset: str,
    graph: str,
    role: str = "planner",
    form: str = "",
    members: int = 1,
    sampled: Flag = False,
    seed: int = 0,
    count: int = 200,
    turns: int = 12,
    engine: tuple[str, ...] = (),
    path: Paths = (),
    json: Json = False,
) -> int:
    """Run POLICY, which is NAME@VERSION, on stored tasks and keep the results, for `offing policy promote`.

    Parameters
    ----------
    dataset
        Stored tasks that nothing was trained on.
    graph
        The graph that works on them.
    role
        The role that the policy answers.
    form
        In this form, such as compact.
    members
        Runs of each task.
    sampled
        At temperature 1. None: greedily.
    seed
        Versions that are compared need the same.
    count
        Tasks at most.
    turns
        Turns of a run at most.
    engine
        `role=engine` for other roles; or `all=…`.
    path
        A folder or a .py file with a graph that is not installed, or several.
    json
        Print only JSON on standard output.
    """
    from offing.cli.promotion import Evaluation, evaluate

    wanted = Evaluation(policy, dataset, graph, role, form, members, not sampled, seed, count, turns, engine, path)
    return evaluate(wanted, json)


@policy.command(name="canary")
def canary_policy(policy: str, *, share: float = 0.1) -> int:
    """Let POLICY, which is NAME@VERSION, answer a share of the new runs that name the policy without a version."""
    from offing.cli.promotion import canary

    return canary(policy, share)


@policy.command(name="rollback")
def rollback_policy(name: str) -> int:
    """One step back: the canary of NAME leaves; without one, the version before the active one is active again."""
    from offing.cli.promotion import rollback

    return rollback(name)
