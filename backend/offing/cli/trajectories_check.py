"""`offing trajectories check`: recompute stored logprobs."""

import sys
from collections.abc import Iterator
from dataclasses import asdict

import orjson

from offing.cli.options import Json
from offing.cli.show import get_run_id, run_with_database
from offing.core.errors import InvalidInput
from offing.local.data_directory import locate_data_directory
from offing.local.engine_process import with_engine_url
from offing.models.credentials import ENGINE_URL_VARIABLE, EngineEndpoint
from offing.services import logprob_parity
from offing.services.logprob_parity import MAX_LOGPROB_DIFFERENCE, ParityReport
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database


def check(
    *,
    sample_size: int = 100,
    seed: int = 0,
    run: str | None = None,
    policy: str | None = None,
    tolerance: float = MAX_LOGPROB_DIFFERENCE,
    json: Json = False,
) -> int:
    """Recompute the logprobs of sampled role calls with the policy engine.

    Exits with 1 and quarantines the role calls that differ.

    Parameters
    ----------
    sample_size
        Maximum number of role calls.
    seed
        Seed of the sample. Another seed selects other role calls.
    run
        Only role calls of this run. RUN is an id or the last characters of an id.
    policy
        Only role calls of this NAME@VERSION.
    tolerance
        Maximum absolute difference of a logprob that is accepted.
    json
        Print only JSON on standard output.
    """
    endpoint = _get_engine_endpoint()

    async def work(database: Database) -> ParityReport:
        of = await get_run_id(database, run) if run else None
        return await logprob_parity.measure_parity(
            *(database, LOCAL_TENANT, endpoint),
            sample_size=sample_size,
            seed=seed,
            run_id=of,
            policy_name=policy,
            tolerance=tolerance,
        )

    report = run_with_database(work)
    if json:
        sys.stdout.buffer.write(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2) + b"\n")
    else:
        print(*_render_parity(report), sep="\n")
    return 1 if report.quarantined else 0


def _get_engine_endpoint() -> EngineEndpoint:
    """Return the endpoint of the configured policy engine, or of the one that `offing up` runs."""
    settings = load_settings()
    settings = with_engine_url(settings, locate_data_directory(settings.home))
    if not settings.engine_url:
        remedy = "Start `offing engine serve` and set it to its URL, or set OFFING_POLICY_DIR and run `offing up`."
        raise InvalidInput(ENGINE_URL_VARIABLE, "is not set", remedy)
    key = settings.engine_key
    return EngineEndpoint(settings.engine_url, key.get_secret_value() if key else "")


def _render_parity(result: ParityReport) -> Iterator[str]:
    yield f"{result.scored_count} turns recomputed, maximum difference {result.max_difference:.2g}"
    for one in result.quarantined:
        yield f"in quarantine: {str(one.run_id)[-8:]} turn {one.seq} of {one.policy}: {one.quarantine_reason}"
    reasons = {one.failure for one in result.failed}
    if reasons:
        yield f"not recomputed: {len(result.failed)} turns: {'; '.join(sorted(reasons))}"
