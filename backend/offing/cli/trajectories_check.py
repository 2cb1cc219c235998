"""`offing trajectories check`: whether stored log-probabilities can be computed again."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import orjson
from cyclopts import Parameter

from offing.cli.show import find_run, with_database
from offing.core.errors import InvalidInput
from offing.local.datadir import layout
from offing.local.policy import with_engine
from offing.models.credentials import ENGINE_URL, Destination
from offing.services import parity
from offing.services.parity import TOLERANCE, Parity
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database


def check(
    *,
    sample: int = 100,
    seed: int = 0,
    run: str | None = None,
    policy: str | None = None,
    tolerance: float = TOLERANCE,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Score a sample of turns again with the policy engine. Exit 1: some differ, and are in quarantine now.

    Parameters
    ----------
    sample
        How many turns at most.
    seed
        Draws the sample; another seed, other turns.
    run
        Of this run only; its last characters are enough.
    policy
        Of this NAME@VERSION only.
    tolerance
        Largest difference of a log-probability that is none.
    json
        Print only JSON on standard output.
    """
    to = _engine()

    async def work(database: Database) -> Parity:
        of = await find_run(database, run) if run else None
        return await parity.check(
            *(database, LOCAL_TENANT, to),
            sample=sample,
            seed=seed,
            run=of,
            policy=policy,
            tolerance=tolerance,
        )

    found = with_database(work)
    if json:
        sys.stdout.buffer.write(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2) + b"\n")
    else:
        print(*_told(found), sep="\n")
    return 1 if found.doubtful else 0


def _engine() -> Destination:
    """The engine of the settings, or the one that `offing up` runs for this home's policies."""
    settings = load_settings()
    settings = with_engine(settings, layout(settings.home))
    if not settings.engine_url:
        remedy = (
            "Start `offing engine serve`, and set it to where that listens; or OFFING_POLICIES, as for `offing up`."
        )
        raise InvalidInput(ENGINE_URL, "is not set", remedy)
    key = settings.engine_key
    return Destination(settings.engine_url, key.get_secret_value() if key else "")


def _told(found: Parity) -> Iterator[str]:
    yield f"{found.checked} turns scored again, largest difference {found.worst:.2g}"
    for one in found.doubtful:
        yield f"in quarantine: {str(one.run)[-8:]} turn {one.seq} of {one.policy}: {one.doubt}"
    reasons = {one.unscored for one in found.unscored}
    if reasons:
        yield f"not scored: {len(found.unscored)} turns: {'; '.join(sorted(reasons))}"
