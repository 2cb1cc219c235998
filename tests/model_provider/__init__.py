"""A stand-in for a model provider: a real HTTP server on loopback that speaks the OpenAI chat-completions wire."""

from tests.model_provider.replies import Completion, Cut, Fault, Hangup, Malformed, Reply, Slow, Tokens, Whole
from tests.model_provider.server import Received, Responder, WireServer, able, scripted, serve_on_thread

__all__ = [
    "Completion",
    "Cut",
    "Fault",
    "Hangup",
    "Malformed",
    "Received",
    "Reply",
    "Responder",
    "Slow",
    "Tokens",
    "Whole",
    "WireServer",
    "able",
    "scripted",
    "serve_on_thread",
]
