"""A stand-in for a policy server: vLLM's token-level wire with what our engine adds, over a tokenizer of bytes.

What it writes is a function of the request; log-probabilities are a function of the ids up to a token, so that
scoring the same ids gives the same ones. Opens no socket.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.model_provider.replies import Fault, Malformed, Reply
from tests.model_provider.server import Received

Json = dict[str, Any]
Respond = Callable[[Json], str]
"""What the policy writes to a chat request's body."""

ROLES = {"system": 1, "user": 2, "assistant": 3}
END = 0
FIRST = 10
"""Id of byte 0."""


def tokens_of(text: str) -> list[int]:
    return [byte + FIRST for byte in text.encode()]


def rendered(messages: Sequence[Json]) -> list[int]:
    """A role's id, the text's bytes, an end, for each message."""
    return [id for m in messages for id in (ROLES[m["role"]], *tokens_of(m["content"]), END)]


def logprob(before: Sequence[int], id: int) -> float:
    """Of one id after others: from -4 to 0, by hash."""
    digest = hashlib.blake2b(repr((list(before), id)).encode(), digest_size=4).digest()
    return -4 * int.from_bytes(digest) / 2**32


def says(*texts: str) -> Respond:
    """The texts in order, the last again and again."""
    rest = list(texts)
    return lambda _body: rest.pop(0) if len(rest) > 1 else rest[0]


@dataclass(slots=True)
class Policies:
    """A responder for `WireServer`. `without`: names of response fields that this server does not know."""

    says: Respond
    versions: tuple[str, ...] = ("small@1",)
    without: frozenset[str] = frozenset()
    retells: bool = False
    """Whether a turn that is repeated in a prompt is written in other tokens than it was sampled in."""
    fingerprint: str = "offing-engine 1"
    native: bool = False
    """SGLang's places before it knew `return_token_ids`: a choice's `meta_info` and `prompt_token_ids`, and neither
    entropy nor a list of log-probabilities."""
    chats: list[Json] = field(default_factory=list[Json])
    """Bodies of the chat requests that were answered."""

    def __call__(self, request: Received) -> Reply:
        body = request.body
        if body["model"] not in self.versions:
            return Fault(404, f"The model `{body['model']}` does not exist.", "NotFoundError")
        return Malformed(json.dumps(self._chat(body) if "messages" in body else self._scored(body)).encode())

    def _chat(self, body: Json) -> Json:
        self.chats.append(body)
        prompt, used = self._prompt(body)
        text = self.says(body)
        ids = [*tokens_of(text), END]
        pieces = [*(bytes([byte]) for byte in text.encode()), b""]
        logprobs = [logprob([*prompt, *ids[:n]], id) for n, id in enumerate(ids)]
        entries = [
            {"token": str(i), "logprob": p, "bytes": list(b)} for i, p, b in zip(ids, logprobs, pieces, strict=True)
        ]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "token_ids": ids,
            "logprobs": {"content": entries},
            "token_entropy": [0.25] * len(ids),
        }
        if self.native:
            return self._native(body, prompt, ids, pieces, logprobs)
        whole = {
            "model": body["model"],
            "system_fingerprint": self.fingerprint,
            "prompt_token_ids": prompt,
            "prefix_used": used,
            "choices": [{k: v for k, v in choice.items() if k not in self.without}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids)},
            "weights_sha256": "w",
            "tokenizer_sha256": "t",
            "template_sha256": "c",
        }
        return {k: v for k, v in whole.items() if k not in self.without and v is not None}

    def _native(
        self, body: Json, prompt: Sequence[int], ids: Sequence[int], pieces: Sequence[bytes], logprobs: Sequence[float]
    ) -> Json:
        messages = [[p, i, b.decode("utf-8", "replace")] for p, i, b in zip(logprobs, ids, pieces, strict=True)]
        choice: Json = {
            "index": 0,
            "message": {"role": "assistant", "content": b"".join(pieces).decode()},
            "finish_reason": "stop",
            "prompt_token_ids": list(prompt),
            "meta_info": {"output_token_logprobs": messages},
        }
        return {
            "model": body["model"],
            "choices": [{k: v for k, v in choice.items() if k not in self.without}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids)},
        }

    def _prompt(self, body: Json) -> tuple[list[int], bool | None]:
        inputs, messages = body.get("offing_prefix"), body["messages"]
        if inputs is not None and "prefix_used" not in self.without:
            after = messages[inputs["message_count"] :]
            return [*inputs["token_ids"], *rendered(after), ROLES["assistant"]], True
        if self.retells:
            messages = [m | {"content": m["content"] + " "} if m["role"] == "assistant" else m for m in messages]
        return [*rendered(messages), ROLES["assistant"]], None

    def _scored(self, body: Json) -> Json:
        ids = body["prompt"]
        results = [None, *({str(id): {"logprob": logprob(ids[:n], id)}} for n, id in enumerate(ids) if n)]
        return {
            "model": body["model"],
            "weights_sha256": "w",
            "choices": [{"index": 0, "text": "", "prompt_logprobs": results}],
        }
