"""Agent cards of A2A: what an assistant is, and where it is reached."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from offing.storage.assistants import AssistantRow

PROTOCOL_VERSION = "0.3.0"

MODES = ("application/json", "text/plain")


def render_card(assistant: AssistantRow, address: str) -> Mapping[str, Any]:
    """Return the card of an assistant. `address` is that of LangGraph's server API, without a slash at its end."""
    description = assistant.description or f"The assistant {assistant.name}."
    skill = {
        "id": f"{assistant.id}-main",
        "name": assistant.name,
        "description": description,
        "tags": ["assistant", "langgraph"],
        "inputModes": MODES,
        "outputModes": MODES,
    }
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "name": assistant.name,
        "description": description,
        "url": f"{address}/a2a/{assistant.id}",
        "preferredTransport": "JSONRPC",
        "version": version("offing"),
        "capabilities": {"streaming": True, "pushNotifications": False, "stateTransitionHistory": False},
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "skills": [skill],
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
        "security": [{"key": []}],
    }
