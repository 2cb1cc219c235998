"""Requests of one version that decode together: they join by a prefill, draw a token a step, and leave when finished.

The only home of the decode loop. It runs on one thread and knows no HTTP, no names and no other version.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# transformers carries partial types.

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from offing_engine.cache import Rows, valid
from offing_engine.kept import Kept, Stretch
from offing_engine.sampling import Knobs, Sampling, drawn, entropy, knobs, processed, uniforms
from offing_engine.weights import Policy

SCORED_AT_ONCE = 512
"""Positions of a scoring whose logits are in memory together."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What was drawn, one entry a token in each tuple."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropy: tuple[float, ...]
    finish: Literal["stop", "length"]
    stop: str | None = None
    """The stop string that ended it. None: an end-of-turn token or the limit."""
    cached: int = 0
    """Prompt tokens that did not have to be read again."""


@dataclass(eq=False, slots=True)
class Work:
    """One request on its way."""

    ids: tuple[int, ...]
    """The prompt. Not empty."""
    most: int
    """Tokens to draw at most, at least 1."""
    sampling: Sampling
    seed: int
    stops: tuple[bytes, ...]
    done: Callable[[Completion | BaseException], None]
    """Called once at most, on the batch's thread; see `settle`."""
    dropped: bool = False
    """Nobody waits any more; set from another thread."""
    out: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    entropy: list[float] = field(default_factory=list[float])
    uniform: list[float] = field(default_factory=list[float])
    tail: bytes = b""
    """The end of the text, as much as a stop string needs."""
    settled: bool = False
    past: Stretch | None = None
    """What is known of the prompt already."""

    @property
    def new(self) -> int:
        """Prompt tokens to be read."""
        return len(self.ids) - (self.past.length if self.past else 0)

    @property
    def columns(self) -> int:
        """Tokens of prompt and completion together, at most."""
        return len(self.ids) + self.most

    def settle(self, found: "Completion | BaseException") -> None:
        """Tells who waits; only the first time."""
        if not self.settled:
            self.settled = True
            self.done(found)


class Batch:
    """The running rows of one policy."""

    def __init__(self, policy: Policy, kept: Kept | None = None) -> None:
        self._policy, self._kept = policy, kept or Kept(0)
        self._rows = Rows(policy.network.layers)
        self._works: list[Work] = []
        self._knobs: Knobs | None = None
        """Of the rows as they are; None after rows have come or gone."""

    def __len__(self) -> int:
        return len(self._works)

    @property
    def works(self) -> Sequence[Work]:
        return self._works

    def prepare(self, work: Work) -> None:
        """Looks up what is known of the prompt; before requests are grouped for `join`."""
        work.past = self._kept.longest(work.ids) if self._kept.keeps else None

    def join(self, works: Sequence[Work]) -> None:
        """Reads the prompts of `works`, draws each one's first token, and keeps those that go on."""
        for work in works:
            work.uniform = uniforms(work.seed, work.most).tolist()
        lengths = [len(work.ids) for work in works]
        logits, past = self._read(works, lengths)
        how = knobs([work.sampling for work in works], logits.device, self._policy.network.vocabulary)
        self._draw(works, logits, how)
        self._rows.join(past, lengths)
        self._works.extend(works)
        self._knobs = None
        self._leave(self._finished)

    def step(self) -> None:
        """Draws one token for every row."""
        self._leave(lambda _: None)
        if not self._works:
            return
        if self._knobs is None:
            listed = [work.sampling for work in self._works]
            self._knobs = knobs(listed, self._policy.network.device, self._policy.network.vocabulary)
        self._draw(self._works, self._next_logits(), self._knobs)
        self._leave(self._finished)

    def fail(self, error: BaseException) -> None:
        """Gives every row up."""
        for work in self._works:
            work.settle(error)
        self._works, self._rows, self._knobs = [], Rows(self._policy.network.layers), None

    def _read(self, works: Sequence[Work], lengths: Sequence[int]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Logits [n, vocabulary] after each prompt, and the prompts' keys and values, ending at the last column.

        Every row reads as many tokens as the one with most to read, so that known columns end where new ones begin.
        """
        device, read = self._policy.network.device, max(work.new for work in works)
        known = [max(len(work.ids) - read, 0) if work.past else 0 for work in works]
        ids = torch.tensor([[0] * (read - len(work.ids)) + list(work.ids[-read:]) for work in works], device=device)
        model, past = self._policy.network.use(self._policy.adapter), _past(works, known)
        out = model(
            input_ids=ids,
            **_prompt_mask(lengths, max(known), read, device, self._policy.network.slides),
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        )
        layers = cast("Sequence[Any]", past.layers)
        return out.logits[:, -1], [(layer.keys, layer.values) for layer in layers]

    def _next_logits(self) -> Tensor:
        network = self._policy.network
        model, past = network.use(self._policy.adapter), self._rows.as_past()
        lengths = torch.tensor(self._rows.lengths, device=network.device)
        out = model(
            input_ids=torch.tensor([[work.out[-1]] for work in self._works], device=network.device),
            position_ids=lengths[:, None],
            attention_mask=_step_mask(lengths + 1, self._rows.width + 1, network.slides),
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        )
        self._rows.advanced()
        return out.logits[:, -1]

    def _draw(self, works: Sequence[Work], logits: Tensor, how: Knobs) -> None:
        logprobs = processed(logits, how)
        uniform = torch.tensor([work.uniform[len(work.out)] for work in works], dtype=torch.float64)
        ids = drawn(logprobs, uniform.to(logits.device))
        chosen = logprobs.gather(1, ids[:, None])[:, 0]
        listed = zip(works, ids.tolist(), chosen.tolist(), entropy(logprobs).tolist(), strict=True)
        for work, id, logprob, nats in listed:
            work.out.append(id)
            work.logprobs.append(logprob)
            work.entropy.append(nats)

    def _leave(self, finished: Callable[[Work], Completion | None]) -> None:
        """Lets go of rows that are finished or dropped; from the end, since the last row takes a free place."""
        for row in reversed(range(len(self._works))):
            work = self._works[row]
            found = None if work.dropped else finished(work)
            if found is None and not work.dropped:
                continue
            if found is not None and self._kept.keeps:
                self._kept.put((*work.ids, *work.out[:-1]), self._rows.taken(row))
            self._rows.leave(row)
            self._works[row] = self._works[-1]
            self._works.pop()
            self._knobs = None
            if found is not None:
                work.settle(found)

    def _finished(self, work: Work) -> Completion | None:
        """The completion, if its last token ended it. Asked once a token."""
        if work.out[-1] in self._policy.ends:
            return _completion(work, "stop")
        if work.stops and (stop := self._stopped(work)) is not None:
            return _completion(work, "stop", stop)
        return _completion(work, "length") if len(work.out) >= work.most else None

    def _stopped(self, work: Work) -> str | None:
        """The stop string that the last token completed."""
        text = work.tail + self._policy.pieces.last(work.out)
        work.tail = text[-max(len(stop) for stop in work.stops) :]
        return next((stop.decode() for stop in work.stops if stop in text), None)


def _completion(work: Work, finish: Literal["stop", "length"], stop: str | None = None) -> Completion:
    cached = work.past.length if work.past else 0
    return Completion(tuple(work.out), tuple(work.logprobs), tuple(work.entropy), finish, stop, cached)


def _past(works: Sequence[Work], known: Sequence[int]) -> DynamicCache:
    """The first `known[i]` columns of each row's known stretch, ending at a common column."""
    width = max(known)
    if width == 0:
        return DynamicCache()
    stretches = [work.past.layers for work in works if work.past is not None]
    layers = [_aligned([row[n] for row in stretches], known, width) for n in range(len(stretches[0]))]
    return DynamicCache([(keys, values) for keys, values in layers])


def _aligned(rows: Sequence[tuple[Tensor, Tensor]], known: Sequence[int], width: int) -> list[Tensor]:
    """Keys and values [rows, heads, width, _], with zeros in front of the shorter ones."""
    found: list[Tensor] = []
    for part in range(2):
        first = rows[0][part]
        whole = first.new_zeros((len(rows), first.shape[0], width, first.shape[2]))
        for n, (row, length) in enumerate(zip(rows, known, strict=True)):
            whole[n, :, width - length :] = row[part][:, :length]
        found.append(whole)
    return found


def _prompt_mask(
    lengths: Sequence[int], known: int, read: int, device: torch.device, slides: bool
) -> dict[str, Tensor]:
    """Mask and positions of the last `read` columns of prompts that end at the last one of `known + read`.

    Nothing for prompts of one length that are wholly read.
    """
    width = known + read
    if min(lengths) == width and known == 0:
        return {}
    real = valid(torch.tensor(lengths, device=device), width)
    positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, known:]
    if slides:
        return {"attention_mask": real.long(), "position_ids": positions}
    causal = torch.ones(read, width, dtype=torch.bool, device=device).tril(known)
    # A column in front of its prompt looks at itself: a row of nothing would give NaN, which a zero weight keeps.
    itself = torch.ones(read, width, dtype=torch.bool, device=device).tril(known).triu(known)
    seen = (causal & real[:, None, :]) | itself
    return {"attention_mask": seen[:, None], "position_ids": positions}


def _step_mask(lengths: Tensor, width: int, slides: bool) -> Tensor | None:
    """What the new column of each row sees. None: everything."""
    real = valid(lengths, width)
    if slides:
        return real.long()
    return None if bool(real.all()) else real[:, None, None, :]


def scored(policy: Policy, ids: Sequence[int], sampling: Sampling) -> list[tuple[float, int, float]]:
    """Of each id but the first: its log-probability given those before it, the likeliest id there, and that one's.

    Under the distribution that `sampling` makes; temperature 0 scores at 1.
    """
    network, past = policy.network, DynamicCache()
    model, how = network.use(policy.adapter), knobs([_soft(sampling)], network.device, network.vocabulary)
    given = torch.tensor([list(ids)], device=network.device)
    found: list[tuple[float, int, float]] = []
    for start in range(0, len(ids) - 1, SCORED_AT_ONCE):
        piece = given[:, start : min(start + SCORED_AT_ONCE, len(ids) - 1)]
        out: Any = model(input_ids=piece, past_key_values=past, use_cache=True)
        found.extend(_against(out.logits[0], given[0, start + 1 : start + 1 + piece.shape[1]], how))
    return found


def _against(logits: Tensor, wanted: Tensor, how: Knobs) -> list[tuple[float, int, float]]:
    logprobs = processed(logits, how)
    best, where = logprobs.max(dim=-1)
    chosen = logprobs.gather(1, wanted[:, None])[:, 0]
    return list(zip(chosen.tolist(), where.tolist(), best.tolist(), strict=True))


def _soft(sampling: Sampling) -> Sampling:
    return Sampling(sampling.temperature or 1.0, sampling.top_p, sampling.top_k)
