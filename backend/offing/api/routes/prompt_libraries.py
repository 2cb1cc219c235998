"""Routes for prompt libraries: preview a distillation, start a distillation job and read a version.

Workers run the jobs.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.prompt_libraries import (
    DistillationPreviewOut,
    DistillIn,
    PromptLibraryOut,
    build_gate_config,
    serialize_distillation_preview,
    serialize_prompt_library,
)
from offing.api.schemas.training_jobs import TrainingJobOut, serialize_job
from offing.api.strict_route import StrictRoute
from offing.services import prompt_distillation
from offing.services.prompt_distillation import DistillationRequest

router = APIRouter(tags=["training"], route_class=StrictRoute)

LibraryName = Annotated[str, Path(max_length=100, description="Name of the prompt library.")]


@router.get("/prompt-libraries/{name}/preview", responses=describe_problems(_409="The name belongs to weights."))
async def preview_distillation(caller: CurrentCaller, deps: Deps, name: LibraryName) -> DistillationPreviewOut:
    """Get the number of rated runs that a prompt library has not been distilled from."""
    return serialize_distillation_preview(
        name, await prompt_distillation.preview_distillation(deps.database, caller.tenant_id, name)
    )


@router.post(
    "/prompt-libraries/{name}/distill",
    status_code=201,
    responses=BODY_TOO_LARGE
    | {200: {"model": TrainingJobOut, "description": "This job has not ended yet."}}
    | describe_problems(_409="Another job distills this library, or the name belongs to weights."),
)
async def distill_prompt_library(
    caller: CurrentCaller, deps: Deps, name: LibraryName, body: DistillIn, response: Response
) -> TrainingJobOut:
    """Queue a distillation job.

    It compares rated runs and registers the resulting prompt library as a candidate.

    It is a training job of kind `prompt_library` and is watched and controlled like one.
    """
    engine = body.engine or deps.default_engine
    gate = build_gate_config(body.gate, deps.default_engine) if body.gate else None
    request = DistillationRequest(
        name, engine, body.graph, body.tag, body.max_groups, body.include_cases, body.max_cost_usd, gate
    )
    job, new = await prompt_distillation.create_job(deps.database, caller.tenant_id, request, deps.graphs)
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/api/v1/training-jobs/{job.id}"
    return serialize_job(job)


@router.get(
    "/policy-versions/{policy_id}/prompt-library", responses=describe_problems(_404="There is no such policy version.")
)
async def get_prompt_library(caller: CurrentCaller, deps: Deps, policy_id: UUID) -> PromptLibraryOut:
    """Get the text of a prompt library version, the runs that each part comes from, and its changes."""
    return serialize_prompt_library(await prompt_distillation.get_contents(deps.database, caller.tenant_id, policy_id))
