"""The engine without a model: it calls the function that a role carries for this purpose.

Knows no role. The same input gives the same answer, nothing is sent anywhere, and nothing is spent.
"""

import asyncio

from offing.core.model import Answer, EngineFailure, FailureKind
from offing.models.engine import RoleRequest


class ExtractiveEngine:
    """Dispatches to `role.extractive`, off the event loop, since ranking passages takes processor time."""

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """UNKNOWN_ENGINE: the role has no such function. Raises what it raises, and `TypeError` for a wrong type."""
        role = request.role
        if role.extractive is None:
            return EngineFailure(
                FailureKind.UNKNOWN_ENGINE,
                f"The role {role.name!r} cannot be answered without a model. "
                f"Choose another engine for it, for instance {role.name}=litellm:provider/model.",
            )
        output = await asyncio.to_thread(role.extractive, request.given)
        if not isinstance(output, role.output):
            raise TypeError(f"{role.name}: the extractive function returned {type(output).__name__}")
        return Answer(output=output)
