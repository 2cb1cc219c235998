"""Which requests run when: one thread that owns all weights and batches.

The only home of admission and of what is resident. Each round lets waiting requests join, then takes one step of every
version that has rows, so that no version waits for another's longest answer.
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
from offing_engine import weights
from offing_engine.batch import Batch, Completion, Work, scored
from offing_engine.folder import checked_folder, is_adapter, version_name, weights_sha256
from offing_engine.kept import Kept
from offing_engine.sampling import Sampling
from offing_engine.weights import Policy

log = logging.getLogger("offing.engine")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process may use."""

    rows: int = 128
    """Requests that decode at once, all versions together."""
    cells: int = 4_194_304
    """Rows times columns of keys and values that one version may keep."""
    context: int = 32_768
    """Tokens of prompt and completion, where the model itself allows as many."""
    prefill: int = 16_384
    """Prompt tokens, padding included, that are read between two steps."""
    kept: int = 268_435_456
    """Bytes of keys and values that each version keeps of finished requests, for turns that go on from them."""
    waiting: int = 4_096
    """Requests that may wait; more are refused."""


class _Version:
    """A resident policy with its running and waiting requests."""

    def __init__(self, policy: Policy, kept: int) -> None:
        self.policy, self.batch = policy, Batch(policy, Kept(kept))
        self.waiting: deque[Work] = deque()
        self.leaving = False
        """Takes no more requests, and is freed when the last one is done."""

    @property
    def busy(self) -> bool:
        return bool(self.waiting) or len(self.batch) > 0


class Engine:
    """The thread and its queue. Every public method may be called from any thread."""

    def __init__(self, device: torch.device, limits: Limits) -> None:
        self._device, self.limits = device, limits
        self._orders: deque[Callable[[], None]] = deque()
        self._woken = threading.Condition()
        self._versions: dict[str, _Version] = {}
        self._retired: list[_Version] = []
        self._loading = threading.Lock()
        """transformers opens one set of weights at a time."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="offing-engine", daemon=True)
        self._thread.start()

    @property
    def policies(self) -> Mapping[str, Policy]:
        """What is resident now, by name, in order of loading."""
        return {name: version.policy for name, version in list(self._versions.items())}

    @property
    def rows(self) -> int:
        """Requests that decode or wait at this moment."""
        known = [*list(self._versions.values()), *self._retired]
        return sum(len(version.batch) + len(version.waiting) for version in known)

    def policy(self, name: str) -> Policy:
        """Raises NotFound for a version that is not resident; no other ever answers in its place."""
        version = self._versions.get(name)
        if version is None:
            raise NotFound("policy version", name)
        return version.policy

    def load(self, name: str, folder: Path, base: str | None = None) -> Policy:
        """Makes a version resident and returns it. Blocks; requests go on meanwhile, except while an adapter is added.

        The same weights may be loaded twice; nothing happens then. Raises InvalidInput for a name or folder that cannot
        be used, Conflict when the name is taken by other weights.
        """
        version_name(name)
        with self._loading:
            known = self._versions.get(name)
            if known is not None:
                return _same(known.policy, folder)
            if is_adapter(folder):
                return self._ask(lambda: self._add(name, lambda: self._adapter(name, folder, base)))
            found = weights.load_full(name, folder, self._device, self.limits.context)
            return self._ask(lambda: self._add(name, lambda: found))

    def unload(self, name: str) -> None:
        """Refuses new requests for a version from now on, and frees it when those it has are done.

        Raises NotFound, and Conflict for full weights that resident adapters need.
        """
        self._ask(lambda: self._retire(name))

    def submit(self, name: str, work: Work) -> None:
        """Queues `work`; `work.done` is called once, unless it is dropped."""
        self._order(lambda: self._queue(name, work))

    def score(self, name: str, ids: tuple[int, ...], sampling: Sampling) -> list[tuple[float, int, float]]:
        """See `scored`. Blocks."""
        return self._ask(lambda: scored(self.policy(name), ids, sampling))

    def stop(self) -> None:
        """Ends the thread after the round it is in."""
        self._stopping = True
        self._order(lambda: None)
        self._thread.join()

    def _ask(self, order: Callable[[], T]) -> T:
        """Runs `order` on the thread and waits for what it returns or raises."""
        from concurrent.futures import Future

        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(order())
            except BaseException as error:
                answer.set_exception(error)

        self._order(run)
        return answer.result()

    def _order(self, order: Callable[[], None]) -> None:
        with self._woken:
            self._orders.append(order)
            self._woken.notify()

    def _run(self) -> None:
        with torch.inference_mode():
            while not self._stopping:
                self._take_orders()
                for version in [*self._versions.values(), *self._retired]:
                    self._advance(version)
                self._free()

    def _take_orders(self) -> None:
        """Everything that was asked meanwhile; waits for something when there is nothing to do."""
        with self._woken:
            if not self._orders and not any(v.busy for v in [*self._versions.values(), *self._retired]):
                self._woken.wait()
            orders = list(self._orders)
            self._orders.clear()
        for order in orders:
            order()

    def _advance(self, version: _Version) -> None:
        """One round of a version. What goes wrong in it ends its requests, not the engine."""
        joining: list[Work] = []
        try:
            version.batch.step()
            joining = self._admitted(version)
            for group in groups(joining, self.limits.prefill):
                version.batch.join(group)
        except Exception as error:
            log.exception("a round of %s failed", version.policy.name)
            version.batch.fail(error)
            for work in joining:
                work.settle(error)

    def _admitted(self, version: _Version) -> list[Work]:
        """Requests that may join now: as many rows, columns and prompt tokens as there is room for, in order."""
        free = self.limits.rows - sum(len(v.batch) for v in [*self._versions.values(), *self._retired])
        widest = max((work.columns for work in version.batch.works), default=0)
        admitted: list[Work] = []
        tokens = 0
        while version.waiting and len(admitted) < free:
            work = version.waiting[0]
            widest = max(widest, work.columns)
            rows, tokens = len(version.batch) + len(admitted) + 1, tokens + len(work.ids)
            if rows > 1 and (rows * widest > self.limits.cells or (admitted and tokens > self.limits.prefill)):
                break
            version.waiting.popleft()
            if not work.dropped:
                version.batch.prepare(work)
                admitted.append(work)
        return admitted

    def _queue(self, name: str, work: Work) -> None:
        version = self._versions.get(name)
        if version is None:
            work.settle(NotFound("policy version", name))
        elif len(version.waiting) >= self.limits.waiting:
            work.settle(Busy())
        else:
            version.waiting.append(work)

    def _adapter(self, name: str, folder: Path, base: str | None) -> Policy:
        under = weights.base_of(folder, base, self.policies)
        return weights.load_adapter(name, folder, under, self.limits.context)

    def _add(self, name: str, make: Callable[[], Policy]) -> Policy:
        if name in self._versions or any(v.policy.name == name for v in self._retired):
            raise Conflict(f"{name} is being loaded or unloaded.", "Wait a moment, or publish under a new name.")
        policy = make()
        self._versions[name] = _Version(policy, self.limits.kept)
        return policy

    def _retire(self, name: str) -> None:
        policy = self.policy(name)
        above = [v.policy.name for v in self._versions.values() if v.policy.network is policy.network]
        if policy.adapter is None and above != [name]:
            raise Conflict(f"{name} is the base of {', '.join(n for n in above if n != name)}.", "Unload those first.")
        self._retired.append(self._versions.pop(name))

    def _free(self) -> None:
        for version in [v for v in self._retired if not v.busy]:
            self._retired.remove(version)
            if version.policy.adapter is not None:
                version.policy.network.remove(version.policy.adapter)


def _same(policy: Policy, folder: Path) -> Policy:
    """`policy`, when `folder` holds its very weights."""
    if weights_sha256(checked_folder(folder, "path")) != policy.files_sha256:
        raise Conflict(f"{policy.name} is loaded with other weights.", "A version is immutable; publish a new name.")
    return policy


class Busy(Exception):
    """More requests wait than may."""


def groups(works: list[Work], budget: int) -> list[list[Work]]:
    """Requests to be read together: with similarly much to read, and at most `budget` tokens with padding, unless one
    alone; those of which a part is known apart from the others."""
    found: list[list[Work]] = []
    for work in sorted(works, key=lambda work: (work.past is not None, work.new)):
        last = found[-1] if found else None
        if last is not None and _fits(work, last, budget):
            last.append(work)
        else:
            found.append([work])
    return found


def _fits(work: Work, group: list[Work], budget: int) -> bool:
    near = work.new <= 2 * group[0].new + 16 and (work.past is None) == (group[0].past is None)
    return near and (len(group) + 1) * work.new <= budget


def result(found: Completion | BaseException) -> Completion:
    """The completion, or raises what came in its place."""
    if isinstance(found, BaseException):
        raise found
    return found
