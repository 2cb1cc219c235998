"""Engine without a model. It calls the extractive function of a role.

The same input gives the same response. Nothing is sent anywhere and nothing is spent.
"""

import asyncio
from collections.abc import Mapping

from offing.core.model import EngineFailure, EngineResponse, FailureKind
from offing.models.engine import RoleRequest


class ExtractiveEngine:
    """Engine that calls `role.extractive` in a thread, because ranking passages uses the CPU."""

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the response, or UNKNOWN_ENGINE if the role has no such function.

        Raises what the function raises, and TypeError if its result has the wrong type.
        """
        role = request.role
        if role.extractive is None:
            return EngineFailure(
                FailureKind.UNKNOWN_ENGINE,
                f"The role {role.name!r} cannot be answered without a model. "
                f"Use another engine for it, such as {role.name}=litellm:provider/model.",
            )
        output = await asyncio.to_thread(role.extractive, request.inputs)
        if not isinstance(output, role.output):
            raise TypeError(f"{role.name}: the extractive function returned {type(output).__name__}")
        return EngineResponse(output=output)


def create_engine(_env: Mapping[str, str]) -> ExtractiveEngine:
    """Create the engine. It reads no environment variables."""
    return ExtractiveEngine()
