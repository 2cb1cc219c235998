"""Routes for training data: one run as a trajectory, and many runs as a stream that a cursor resumes."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime, BaseModel, Field

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import RUN_NOT_FOUND, Responses
from offing.api.schemas.trajectories import TrajectoryOut, serialize_trajectory
from offing.api.strict_route import StrictRoute
from offing.core.run import RunStatus
from offing.core.trajectory import Outcome
from offing.core.trajectory_records import PreferenceSource
from offing.exports.format import ExportOptions, get_streamed_format
from offing.services import trajectories
from offing.storage.trajectories import TrajectoryQuery

router = APIRouter(tags=["trajectories"], route_class=StrictRoute)

LINE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["cursor"],
    "properties": {
        "cursor": {
            "type": ["string", "null"],
            "description": "Continues after the last run that is complete at this line.",
        },
        "record": {"type": "object", "description": "The record in the requested format. Absent in the last line."},
        "more": {
            "type": "boolean",
            "description": "Only in the last line. Whether there are more runs, because the limit ended the stream.",
        },
    },
}

STREAM_RESPONSES: Responses = {
    200: {
        "description": "One JSON document per line. The last line has `more`; a stream without it was interrupted.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}, "x-line": LINE_SCHEMA}},
    }
}

Name = Annotated[str | None, Field(max_length=200)]

Names = Annotated[list[str], Field(max_length=50)]

Reward = Annotated[float | None, Field(allow_inf_nan=False)]


class TrajectoryParams(BaseModel):
    """Query parameters of `GET /trajectories`."""

    format: Annotated[
        str, Field(max_length=100, description="Export format with one document per line, such as rows or jsonl_chat.")
    ] = "rows"
    cursor: Annotated[str | None, Field(max_length=200, description="Cursor from any line of an earlier stream.")] = (
        None
    )
    limit: Annotated[int, Field(ge=1, le=10_000, description="Runs.")] = 1000
    kind: Literal["rollout", "interactive"] = "rollout"
    graph: Name = None
    policy: Annotated[
        str | None,
        Field(max_length=200, description="NAME@VERSION. At least one role call of the run was answered by it."),
    ] = None
    status: RunStatus | None = None
    outcome: Annotated[list[Outcome] | None, Field(description="Absent: all outcomes except infra_error.")] = None
    min_reward: Reward = None
    max_reward: Reward = None
    since: Annotated[AwareDatetime | None, Field(description="Finalized at this time or later.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Finalized before this time.")] = None
    tag: Names = []
    batch_id: UUID | None = None
    group_id: UUID | None = None
    dataset: Name = None
    split: Name = None
    role: Names = []
    include_quarantined: Annotated[bool, Field(description="Include quarantined role calls.")] = False
    include_references: Annotated[bool, Field(description="Include reference answers.")] = False
    preference: Annotated[
        PreferenceSource,
        Field(
            description="What the preferences of the format pairs come from. `rating` and `correction` are what people "
            "said about runs that may be learned from; corrections need the kind interactive."
        ),
    ] = PreferenceSource.REWARD

    @property
    def query(self) -> TrajectoryQuery:
        """The filter of runs."""
        return TrajectoryQuery(
            kind=self.kind,
            graph=self.graph,
            policy=self.policy,
            status=self.status,
            outcomes=tuple(self.outcome or ()),
            min_reward=self.min_reward,
            max_reward=self.max_reward,
            since=self.since,
            until=self.until,
            tags=tuple(self.tag),
            batch_id=self.batch_id,
            group_id=self.group_id,
            dataset=self.dataset,
            split=self.split,
            roles=tuple(self.role),
        )

    @property
    def record_options(self) -> ExportOptions:
        return ExportOptions(self.include_quarantined, self.include_references, self.preference)


@router.get("/trajectories", response_class=StreamingResponse, responses=STREAM_RESPONSES)
async def stream_trajectories(
    caller: CurrentCaller, deps: Deps, params: Annotated[TrajectoryParams, Query()]
) -> StreamingResponse:
    """Stream finalized runs as training records, oldest first.

    The stream applies backpressure: it reads from the database at the client's pace.
    """
    format = get_streamed_format(params.format)
    lines = trajectories.stream_trajectories(
        deps.database, caller.tenant_id, params.query, format, params.record_options, params.cursor, params.limit
    )
    first = await anext(lines)  # an invalid request fails here, while the response can still be a problem
    return StreamingResponse(_chain_lines(first, lines), media_type="application/x-ndjson")


@router.get("/runs/{run_id}/trajectory", responses=RUN_NOT_FOUND)
async def get_trajectory(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**53, description="Return only role calls after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TrajectoryOut:
    """Get a run as a trajectory.

    The response has its segments, and its role calls with tokens, loss mask, logprobs and completion spans.
    """
    return serialize_trajectory(
        await trajectories.get_trajectory_page(deps.database, caller.tenant_id, run_id, after, limit)
    )


async def _chain_lines(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for line in rest:
        yield line
