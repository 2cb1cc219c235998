"""Scheduler of the engine: one thread that owns all weights and batches.

Each round admits waiting requests and then takes one decode step of every version with rows, so
that no version waits for the longest completion of another.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from offing.core.errors import Conflict, NotFound
from offing.models.policy_folder import check_folder, hash_weights, is_adapter, parse_version_name
from offing_engine import weights
from offing_engine.batch import Completion, DecodeBatch, GenerationRequest, score_tokens
from offing_engine.prefix_cache import PrefixCache
from offing_engine.sampling import SamplingParams
from offing_engine.weights import LoadedPolicy

log = logging.getLogger("offing.engine")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Limits of the engine process."""

    max_rows: int = 128
    """Maximum number of requests that decode at the same time, of all versions together."""
    max_cells: int = 4_194_304
    """Maximum number of rows times columns of keys and values per version."""
    max_context_tokens: int = 32_768
    """Maximum number of tokens of prompt and completion, at most what the model allows."""
    max_prefill_tokens: int = 16_384
    """Maximum number of prompt tokens, including padding, that are read between two steps."""
    prefix_cache_bytes: int = 268_435_456
    """Size in bytes of the prefix cache of each version."""
    max_waiting: int = 4_096
    """Maximum number of waiting requests. Further ones are rejected."""


class _ResidentPolicy:
    """Resident policy with its running and waiting requests."""

    def __init__(self, policy: LoadedPolicy, prefix_cache_bytes: int) -> None:
        self.policy, self.batch = policy, DecodeBatch(policy, PrefixCache(prefix_cache_bytes))
        self.waiting: deque[GenerationRequest] = deque()
        self.leaving = False
        """Whether the version accepts no more requests and is freed after the last one."""

    @property
    def is_busy(self) -> bool:
        return bool(self.waiting) or len(self.batch) > 0


class EngineScheduler:
    """Thread that runs the engine, with its queue. Public methods may be called from any thread."""

    def __init__(self, device: torch.device, limits: SchedulerLimits) -> None:
        self._device, self.limits = device, limits
        self._commands: deque[Callable[[], None]] = deque()
        self._condition = threading.Condition()
        self._residents: dict[str, _ResidentPolicy] = {}
        self._retired: list[_ResidentPolicy] = []
        self._loading = threading.Lock()
        """transformers loads one set of weights at a time."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="offing-engine", daemon=True)
        self._thread.start()

    @property
    def policies(self) -> Mapping[str, LoadedPolicy]:
        """Return the resident versions by name, in order of loading."""
        return {name: version.policy for name, version in list(self._residents.items())}

    @property
    def request_count(self) -> int:
        """Number of requests that decode or wait now."""
        models = [*list(self._residents.values()), *self._retired]
        return sum(len(version.batch) + len(version.waiting) for version in models)

    def get_policy(self, name: str) -> LoadedPolicy:
        """Return a resident version. Raises NotFound; no other version is used instead."""
        version = self._residents.get(name)
        if version is None:
            raise NotFound("policy version", name)
        return version.policy

    def load(self, name: str, folder: Path, base: str | None = None) -> LoadedPolicy:
        """Load a version and return it. Blocks, but requests continue, except while an adapter is added.

        Loading the same weights again does nothing. Raises InvalidInput if the name or folder cannot be
        used, and Conflict if the name is in use for other weights.
        """
        parse_version_name(name)
        with self._loading:
            resident = self._residents.get(name)
            if resident is not None:
                return _require_same_weights(resident.policy, folder)
            if is_adapter(folder):
                return self._run_on_thread(
                    lambda: self._add_resident(name, lambda: self._load_adapter(name, folder, base))
                )
            loaded = weights.load_full_policy(name, folder, self._device, self.limits.max_context_tokens)
            return self._run_on_thread(lambda: self._add_resident(name, lambda: loaded))

    def unload(self, name: str) -> None:
        """Reject new requests for a version, and free it when its present requests are finished.

        Raises NotFound, and Conflict for full weights that resident adapters need.
        """
        self._run_on_thread(lambda: self._retire(name))

    def submit(self, name: str, request: GenerationRequest) -> None:
        """Queue a request. `request.on_done` is called once, unless the request is cancelled."""
        self._enqueue_command(lambda: self._enqueue_request(name, request))

    def score(self, name: str, ids: tuple[int, ...], sampling: SamplingParams) -> list[tuple[float, int, float]]:
        """Score token ids as `score_tokens` does. Blocks."""
        return self._run_on_thread(lambda: score_tokens(self.get_policy(name), ids, sampling))

    def stop(self) -> None:
        """Stop the thread after its present round."""
        self._stopping = True
        self._enqueue_command(lambda: None)
        self._thread.join()

    def _run_on_thread(self, command: Callable[[], T]) -> T:
        """Run a command on the thread, and return its result or raise its error."""
        from concurrent.futures import Future

        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(command())
            except BaseException as error:
                answer.set_exception(error)

        self._enqueue_command(run)
        return answer.result()

    def _enqueue_command(self, command: Callable[[], None]) -> None:
        with self._condition:
            self._commands.append(command)
            self._condition.notify()

    def _run(self) -> None:
        with torch.inference_mode():
            while not self._stopping:
                self._run_commands()
                for version in [*self._residents.values(), *self._retired]:
                    self._advance(version)
                self._free_retired()

    def _run_commands(self) -> None:
        """Run all queued commands. If there is nothing to do, wait for one."""
        with self._condition:
            if not self._commands and not any(v.is_busy for v in [*self._residents.values(), *self._retired]):
                self._condition.wait()
            commands = list(self._commands)
            self._commands.clear()
        for order in commands:
            order()

    def _advance(self, resident: _ResidentPolicy) -> None:
        """Run one decode step of a version. An error ends its requests, but not the engine."""
        joining: list[GenerationRequest] = []
        try:
            resident.batch.decode_step()
            joining = self._select_admitted(resident)
            for group in group_requests(joining, self.limits.max_prefill_tokens):
                resident.batch.add(group)
        except Exception as error:
            log.exception("a decode step of %s failed", resident.policy.name)
            resident.batch.fail_all(error)
            for request in joining:
                request.finish(error)

    def _select_admitted(self, resident: _ResidentPolicy) -> list[GenerationRequest]:
        """Select requests that may join now, in order, within the limits of rows, cells and prompt tokens."""
        free = self.limits.max_rows - sum(len(v.batch) for v in [*self._residents.values(), *self._retired])
        widest = max((work.max_columns for work in resident.batch.requests), default=0)
        admitted: list[GenerationRequest] = []
        tokens = 0
        while resident.waiting and len(admitted) < free:
            work = resident.waiting[0]
            widest = max(widest, work.max_columns)
            rows, tokens = len(resident.batch) + len(admitted) + 1, tokens + len(work.ids)
            if rows > 1 and (
                rows * widest > self.limits.max_cells or (admitted and tokens > self.limits.max_prefill_tokens)
            ):
                break
            resident.waiting.popleft()
            if not work.cancelled:
                resident.batch.look_up_prefix(work)
                admitted.append(work)
        return admitted

    def _enqueue_request(self, name: str, request: GenerationRequest) -> None:
        version = self._residents.get(name)
        if version is None:
            request.finish(NotFound("policy version", name))
        elif len(version.waiting) >= self.limits.max_waiting:
            request.finish(QueueFullError())
        else:
            version.waiting.append(request)

    def _load_adapter(self, name: str, folder: Path, base: str | None) -> LoadedPolicy:
        under = weights.resolve_base(folder, base, self.policies)
        return weights.load_adapter_policy(name, folder, under, self.limits.max_context_tokens)

    def _add_resident(self, name: str, load: Callable[[], LoadedPolicy]) -> LoadedPolicy:
        if name in self._residents or any(v.policy.name == name for v in self._retired):
            raise Conflict(f"{name} is being loaded or unloaded.", "Try again later, or publish it under a new name.")
        policy = load()
        self._residents[name] = _ResidentPolicy(policy, self.limits.prefix_cache_bytes)
        return policy

    def _retire(self, name: str) -> None:
        policy = self.get_policy(name)
        above = [v.policy.name for v in self._residents.values() if v.policy.network is policy.network]
        if policy.adapter is None and above != [name]:
            raise Conflict(
                f"{name} is the base of {', '.join(n for n in above if n != name)}.", "Unload the adapters first."
            )
        self._retired.append(self._residents.pop(name))

    def _free_retired(self) -> None:
        for version in [v for v in self._retired if not v.is_busy]:
            self._retired.remove(version)
            if version.policy.adapter is not None:
                version.policy.network.remove_adapter(version.policy.adapter)


def _require_same_weights(policy: LoadedPolicy, folder: Path) -> LoadedPolicy:
    """Return `policy` if `folder` has exactly its weights. Raises Conflict otherwise."""
    if hash_weights(check_folder(folder, "path")) != policy.files_sha256:
        raise Conflict(
            f"{policy.name} is loaded with other weights.", "Versions are immutable. Use a new version name."
        )
    return policy


class QueueFullError(Exception):
    """The queue of waiting requests is full."""


def group_requests(requests: list[GenerationRequest], max_tokens: int) -> list[list[GenerationRequest]]:
    """Group requests that are read together.

    The requests of a group have similar numbers of new tokens, and at most `max_tokens` with padding,
    unless there is only one. Requests with a cached prefix are in separate groups.
    """
    batches: list[list[GenerationRequest]] = []
    for work in sorted(requests, key=lambda work: (work.cached_prefix is not None, work.uncached_tokens)):
        last = batches[-1] if batches else None
        if last is not None and _fits_group(work, last, max_tokens):
            last.append(work)
        else:
            batches.append([work])
    return batches


def _fits_group(request: GenerationRequest, group: list[GenerationRequest], max_tokens: int) -> bool:
    near = request.uncached_tokens <= 2 * group[0].uncached_tokens + 16 and (request.cached_prefix is None) == (
        group[0].cached_prefix is None
    )
    return near and (len(group) + 1) * request.uncached_tokens <= max_tokens


def result_or_raise(result: Completion | BaseException) -> Completion:
    """Return the completion, or raise the error."""
    if isinstance(result, BaseException):
        raise result
    return result
