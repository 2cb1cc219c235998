"""Check whether stored logprobs are those of the stored token ids under the stored policy version.

The engine scores a sample of role calls again. Role calls that differ are put into quarantine, so that they
are never trained. Role calls that cannot be scored are left unchanged and reported.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.models.credentials import EngineEndpoint
from offing.models.policy_engine import score_tokens
from offing.models.policy_protocol import ENGINE_FINGERPRINT_PREFIX, TokenScores
from offing.models.role_call import AttemptFailure
from offing.storage import logprob_parity, segments
from offing.storage.pool import Database
from offing.storage.segments import RoleCallTokens, StoredRoleCall

MAX_LOGPROB_DIFFERENCE = 1e-4
"""Maximum difference of float32 logprobs that counts as equal. Engines in bfloat16 need a larger value."""

MAX_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class RoleCallParity:
    """The result of scoring one role call again."""

    run_id: UUID
    seq: int
    policy: str
    max_difference: float | None
    """Largest difference of a logprob. `None` if the role call could not be scored."""
    quarantine_reason: str = ""
    """Why the role call is now in quarantine. Empty if it is not."""
    failure: str = ""
    """Why the role call could not be scored."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """The result of a parity check."""

    calls: tuple[RoleCallParity, ...]

    @property
    def scored_count(self) -> int:
        return sum(one.max_difference is not None for one in self.calls)

    @property
    def max_difference(self) -> float:
        """Largest difference of all role calls. 0 if nothing was scored."""
        return max((one.max_difference for one in self.calls if one.max_difference is not None), default=0.0)

    @property
    def quarantined(self) -> tuple[RoleCallParity, ...]:
        return tuple(one for one in self.calls if one.quarantine_reason)

    @property
    def failed(self) -> tuple[RoleCallParity, ...]:
        return tuple(one for one in self.calls if one.failure)


async def measure_parity(
    database: Database,
    tenant_id: UUID,
    endpoint: EngineEndpoint,
    *,
    sample_size: int,
    seed: int = 0,
    run_id: UUID | None = None,
    policy_name: str | None = None,
    tolerance: float = MAX_LOGPROB_DIFFERENCE,
) -> ParityReport:
    """Score `sample_size` role calls again and quarantine those that differ by more than `tolerance`.

    `run_id` and `policy_name` restrict the sample. Role calls in quarantine are not sampled.
    """
    async with database.transaction(tenant_id) as connection:
        drawn = await logprob_parity.sample_role_calls(connection, sample_size, seed, run_id=run_id, policy=policy_name)
    compared: list[RoleCallParity] = []
    for of, seqs in drawn.items():
        compared += await _measure_run(database, tenant_id, endpoint, of, seqs, tolerance)
    return ParityReport(tuple(compared))


async def _measure_run(
    database: Database, tenant_id: UUID, endpoint: EngineEndpoint, run_id: UUID, seqs: Sequence[int], tolerance: float
) -> list[RoleCallParity]:
    async with database.transaction(tenant_id) as connection:
        turns = [turn for turn in await segments.read_role_calls(connection, run_id) if turn.seq in set(seqs)]
    gate = asyncio.Semaphore(MAX_CONCURRENCY)

    async def compare_bounded(turn: StoredRoleCall) -> RoleCallParity:
        async with gate:
            return await _compare_call(endpoint, run_id, turn, tolerance)

    comparisons = await asyncio.gather(*(compare_bounded(turn) for turn in turns))
    doubts = [(one.seq, one.quarantine_reason) for one in comparisons if one.quarantine_reason]
    async with database.transaction(tenant_id) as connection:
        await logprob_parity.quarantine_role_calls(connection, run_id, doubts)
    return list(comparisons)


async def _compare_call(
    endpoint: EngineEndpoint, run_id: UUID, role_call: StoredRoleCall, tolerance: float
) -> RoleCallParity:
    tokens = role_call.tokens
    assert tokens is not None, "only role calls with token ids are sampled"
    allowed_differences = 0 if role_call.engine_build.startswith(ENGINE_FINGERPRINT_PREFIX) else 1
    ids = list(tokens.segment_ids[: tokens.end])
    scores = await score_tokens(endpoint, role_call.policy, ids, role_call.sampling, max_tokens=allowed_differences)
    if isinstance(scores, AttemptFailure):
        return RoleCallParity(run_id, role_call.seq, role_call.policy, None, failure=scores.message)
    worst, at = _max_difference(tokens, scores)
    return RoleCallParity(
        run_id, role_call.seq, role_call.policy, worst, _explain_quarantine(role_call, scores, worst, at, tolerance)
    )


def _max_difference(tokens: RoleCallTokens, scores: TokenScores) -> tuple[float, int]:
    """Return the largest difference, and the index of the completion id that has it."""
    again = scores.logprobs[tokens.start : tokens.end]
    differences = [abs(old - (new or 0.0)) for old, new in zip(tokens.logprobs, again, strict=True)]
    worst = max(differences)
    return worst, differences.index(worst)


def _explain_quarantine(
    role_call: StoredRoleCall, scores: TokenScores, max_difference: float, index: int, tolerance: float
) -> str:
    if role_call.weights_sha256 and scores.weights_sha256 and role_call.weights_sha256 != scores.weights_sha256:
        return f"the weights of {role_call.policy} differ from those that sampled the completion"
    if max_difference <= tolerance:
        return ""
    return f"rescored log-probabilities differ by up to {max_difference:.3g}, at completion id {index}"
