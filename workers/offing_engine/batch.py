"""Requests of one policy version that decode together.

They join by a prefill, sample one token per step, and leave when finished. All of it runs in one
thread.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers has partial types.

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from offing_engine.decode_cache import DecodeCache, valid_mask
from offing_engine.prefix_cache import CachedPrefix, PrefixCache
from offing_engine.sampling import (
    SamplingParams,
    SamplingTensors,
    build_sampling_tensors,
    compute_entropy,
    compute_logprobs,
    draw_uniforms,
    sample_tokens,
)
from offing_engine.weights import LoadedPolicy

SCORING_CHUNK_TOKENS = 512
"""Maximum number of positions of a scoring request whose logits are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Sampled tokens of a request. Each tuple has one entry per token."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]
    finish_reason: Literal["stop", "length"]
    stop_string: str | None = None
    """Stop string that ended the completion. `None` means an end-of-turn token or the limit."""
    cached_tokens: int = 0
    """Number of prompt tokens that came from the prefix cache."""


@dataclass(eq=False, slots=True)
class GenerationRequest:
    """Generation request in progress."""

    ids: tuple[int, ...]
    """Token ids of the prompt, not empty."""
    max_new_tokens: int
    """Maximum number of tokens to sample, at least 1."""
    sampling: SamplingParams
    seed: int
    stops: tuple[bytes, ...]
    on_done: Callable[[Completion | BaseException], None]
    """Called at most once, on the batch's thread; see `finish`."""
    cancelled: bool = False
    """Whether the client has left. Another thread sets it."""
    output_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    entropies: list[float] = field(default_factory=list[float])
    uniform_draws: list[float] = field(default_factory=list[float])
    text_tail: bytes = b""
    """End of the text, as long as stop strings need."""
    is_done: bool = False
    cached_prefix: CachedPrefix | None = None
    """Cached prefix of the prompt."""

    @property
    def uncached_tokens(self) -> int:
        """Number of prompt tokens that are not in the cached prefix."""
        return len(self.ids) - (self.cached_prefix.length if self.cached_prefix else 0)

    @property
    def max_columns(self) -> int:
        """Maximum number of tokens of prompt and completion together."""
        return len(self.ids) + self.max_new_tokens

    def finish(self, result: "Completion | BaseException") -> None:
        """Report the result to the caller, only the first time."""
        if not self.is_done:
            self.is_done = True
            self.on_done(result)


class DecodeBatch:
    """Requests of one policy that decode together."""

    def __init__(self, policy: LoadedPolicy, prefix_cache: PrefixCache | None = None) -> None:
        self._policy, self._prefix_cache = policy, prefix_cache or PrefixCache(0)
        self._cache = DecodeCache(policy.network.layer_count)
        self._requests: list[GenerationRequest] = []
        self._params: SamplingTensors | None = None
        """Sampling tensors of the present rows. `None` after rows were added or removed."""

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def requests(self) -> Sequence[GenerationRequest]:
        return self._requests

    def look_up_prefix(self, request: GenerationRequest) -> None:
        """Look up the cached prefix of the prompt. Call it before requests are grouped for `add`."""
        request.cached_prefix = self._prefix_cache.find_longest(request.ids) if self._prefix_cache.is_enabled else None

    def add(self, requests: Sequence[GenerationRequest]) -> None:
        """Read the prompts of requests, sample the first token of each, and keep those that are not finished."""
        for request in requests:
            request.uniform_draws = draw_uniforms(request.seed, request.max_new_tokens).tolist()
        lengths = [len(work.ids) for work in requests]
        logits, past = self._prefill(requests, lengths)
        params = build_sampling_tensors(
            [work.sampling for work in requests], logits.device, self._policy.network.vocabulary_size
        )
        self._sample(requests, logits, params)
        self._cache.add_rows(past, lengths)
        self._requests.extend(requests)
        self._params = None
        self._remove_finished(self._completion_if_finished)

    def decode_step(self) -> None:
        """Sample one token for every row."""
        self._remove_finished(lambda _: None)
        if not self._requests:
            return
        if self._params is None:
            listed = [work.sampling for work in self._requests]
            self._params = build_sampling_tensors(
                listed, self._policy.network.device, self._policy.network.vocabulary_size
            )
        self._sample(self._requests, self._next_logits(), self._params)
        self._remove_finished(self._completion_if_finished)

    def fail_all(self, error: BaseException) -> None:
        """End every row with an error."""
        for request in self._requests:
            request.finish(error)
        self._requests, self._cache, self._params = [], DecodeCache(self._policy.network.layer_count), None

    def _prefill(
        self, requests: Sequence[GenerationRequest], lengths: Sequence[int]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return logits [n, vocabulary] after each prompt, and the prompts' keys and values.

        They end at the last column. Every row reads as many tokens as the row with most new tokens, so that
        cached columns end where new ones begin.
        """
        device, read = self._policy.network.device, max(work.uncached_tokens for work in requests)
        cached_lengths = [max(len(work.ids) - read, 0) if work.cached_prefix else 0 for work in requests]
        ids = torch.tensor([[0] * (read - len(work.ids)) + list(work.ids[-read:]) for work in requests], device=device)
        model, past = self._policy.network.select_adapter(self._policy.adapter), _build_past(requests, cached_lengths)
        out = model(
            input_ids=ids,
            **_build_prompt_mask(lengths, max(cached_lengths), read, device, self._policy.network.has_sliding_layers),
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        )
        layers = cast("Sequence[Any]", past.layers)
        return out.logits[:, -1], [(layer.keys, layer.values) for layer in layers]

    def _next_logits(self) -> Tensor:
        network = self._policy.network
        model, past = network.select_adapter(self._policy.adapter), self._cache.as_model_cache()
        lengths = torch.tensor(self._cache.lengths, device=network.device)
        out = model(
            input_ids=torch.tensor([[work.output_ids[-1]] for work in self._requests], device=network.device),
            position_ids=lengths[:, None],
            attention_mask=_build_step_mask(lengths + 1, self._cache.width + 1, network.has_sliding_layers),
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache.advance()
        return out.logits[:, -1]

    def _sample(self, requests: Sequence[GenerationRequest], logits: Tensor, params: SamplingTensors) -> None:
        logprobs = compute_logprobs(logits, params)
        uniform = torch.tensor([work.uniform_draws[len(work.output_ids)] for work in requests], dtype=torch.float64)
        ids = sample_tokens(logprobs, uniform.to(logits.device))
        chosen = logprobs.gather(1, ids[:, None])[:, 0]
        listed = zip(requests, ids.tolist(), chosen.tolist(), compute_entropy(logprobs).tolist(), strict=True)
        for work, id, logprob, nats in listed:
            work.output_ids.append(id)
            work.logprobs.append(logprob)
            work.entropies.append(nats)

    def _remove_finished(self, finished: Callable[[GenerationRequest], Completion | None]) -> None:
        """Remove finished and cancelled rows, from the end, because the last row moves to the free place."""
        for row in reversed(range(len(self._requests))):
            request = self._requests[row]
            completion = None if request.cancelled else finished(request)
            if completion is None and not request.cancelled:
                continue
            if completion is not None and self._prefix_cache.is_enabled:
                self._prefix_cache.put((*request.ids, *request.output_ids[:-1]), self._cache.copy_row(row))
            self._cache.remove_row(row)
            self._requests[row] = self._requests[-1]
            self._requests.pop()
            self._params = None
            if completion is not None:
                request.finish(completion)

    def _completion_if_finished(self, request: GenerationRequest) -> Completion | None:
        """Return the completion if the last token ended it. Call it once per token."""
        if request.output_ids[-1] in self._policy.end_ids:
            return _build_completion(request, "stop")
        if request.stops and (stop := self._find_stop(request)) is not None:
            return _build_completion(request, "stop", stop)
        return _build_completion(request, "length") if len(request.output_ids) >= request.max_new_tokens else None

    def _find_stop(self, request: GenerationRequest) -> str | None:
        """Return the stop string that the last token completed, or `None`."""
        text = request.text_tail + self._policy.token_decoder.decode_last(request.output_ids)
        request.text_tail = text[-max(len(stop) for stop in request.stops) :]
        return next((stop.decode() for stop in request.stops if stop in text), None)


def _build_completion(
    request: GenerationRequest, finish_reason: Literal["stop", "length"], stop: str | None = None
) -> Completion:
    cached = request.cached_prefix.length if request.cached_prefix else 0
    return Completion(
        tuple(request.output_ids), tuple(request.logprobs), tuple(request.entropies), finish_reason, stop, cached
    )


def _build_past(requests: Sequence[GenerationRequest], cached_lengths: Sequence[int]) -> DynamicCache:
    """Build a cache with the first `cached_lengths[i]` columns of each row, aligned at their last column."""
    width = max(cached_lengths)
    if width == 0:
        return DynamicCache()
    cached_layers = [work.cached_prefix.layers for work in requests if work.cached_prefix is not None]
    layers = [
        _align_rows([row[n] for row in cached_layers], cached_lengths, width) for n in range(len(cached_layers[0]))
    ]
    return DynamicCache([(keys, values) for keys, values in layers])


def _align_rows(rows: Sequence[tuple[Tensor, Tensor]], cached_lengths: Sequence[int], width: int) -> list[Tensor]:
    """Stack keys and values to [rows, heads, width, _], with zeros before shorter rows."""
    aligned: list[Tensor] = []
    for part in range(2):
        first = rows[0][part]
        whole = first.new_zeros((len(rows), first.shape[0], width, first.shape[2]))
        for n, (row, length) in enumerate(zip(rows, cached_lengths, strict=True)):
            whole[n, :, width - length :] = row[part][:, :length]
        aligned.append(whole)
    return aligned


def _build_prompt_mask(
    lengths: Sequence[int], cached_length: int, new_length: int, device: torch.device, has_sliding_layers: bool
) -> dict[str, Tensor]:
    """Build the mask and positions of the last `new_length` columns of prompts.

    The prompts end at the last column. Return no entries if all prompts have the same length and none
    is cached.
    """
    width = cached_length + new_length
    if min(lengths) == width and cached_length == 0:
        return {}
    real = valid_mask(torch.tensor(lengths, device=device), width)
    positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, cached_length:]
    if has_sliding_layers:
        return {"attention_mask": real.long(), "position_ids": positions}
    causal = torch.ones(new_length, width, dtype=torch.bool, device=device).tril(cached_length)
    # A column before its prompt attends to itself: an empty row would give NaN, which a zero weight does
    # not remove.
    itself = torch.ones(new_length, width, dtype=torch.bool, device=device).tril(cached_length).triu(cached_length)
    visible = (causal & real[:, None, :]) | itself
    return {"attention_mask": visible[:, None], "position_ids": positions}


def _build_step_mask(lengths: Tensor, width: int, has_sliding_layers: bool) -> Tensor | None:
    """Build the mask of each row's new column. `None` means that it sees everything."""
    real = valid_mask(lengths, width)
    if has_sliding_layers:
        return real.long()
    return None if bool(real.all()) else real[:, None, None, :]


def score_tokens(policy: LoadedPolicy, ids: Sequence[int], sampling: SamplingParams) -> list[tuple[float, int, float]]:
    """Return the scores of each id but the first.

    A score is the id's logprob given those before it, the most likely id there, and its logprob. The
    distribution is that of the sampling parameters. Temperature 0 is scored as 1.
    """
    network, past = policy.network, DynamicCache()
    model, params = (
        network.select_adapter(policy.adapter),
        build_sampling_tensors([_with_positive_temperature(sampling)], network.device, network.vocabulary_size),
    )
    token_ids = torch.tensor([list(ids)], device=network.device)
    scores: list[tuple[float, int, float]] = []
    for start in range(0, len(ids) - 1, SCORING_CHUNK_TOKENS):
        chunk = token_ids[:, start : min(start + SCORING_CHUNK_TOKENS, len(ids) - 1)]
        out: Any = model(input_ids=chunk, past_key_values=past, use_cache=True)
        scores.extend(_compare_logprobs(out.logits[0], token_ids[0, start + 1 : start + 1 + chunk.shape[1]], params))
    return scores


def _compare_logprobs(logits: Tensor, target_ids: Tensor, params: SamplingTensors) -> list[tuple[float, int, float]]:
    logprobs = compute_logprobs(logits, params)
    best, best_ids = logprobs.max(dim=-1)
    chosen = logprobs.gather(1, target_ids[:, None])[:, 0]
    return list(zip(chosen.tolist(), best_ids.tolist(), best.tolist(), strict=True))


def _with_positive_temperature(sampling: SamplingParams) -> SamplingParams:
    return SamplingParams(sampling.temperature or 1.0, sampling.top_p, sampling.top_k)
