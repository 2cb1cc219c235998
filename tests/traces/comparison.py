"""Cases recorded anew, and compared with what is recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.traces.case_runner import Crash, Played, played
from tests.traces.cases import Case
from tests.traces.files import WHENS, Outcome, Recorded, in_words
from tests.traces.kernel import Kernel
from tests.traces.trace import Entry, differences


class Unsteady(Exception):
    """A case that was played twice left two traces."""


async def recorded_anew(kernel: Kernel, case: Case, *, crashes: bool = True) -> Recorded:
    """Undisturbed, twice, and with a crash at every moment. Raises Unsteady."""
    plain, again = await played(kernel, case), await played(kernel, case)
    if result := differences(again.trace, plain.trace):
        raise Unsteady(f"{case.name}: {in_words(result)}")
    after = {crash: await played(kernel, case, crash) for crash in every_moment(plain.transactions if crashes else 0)}
    result = {crash: differences(one.trace, plain.trace) for crash, one in after.items()}
    read_back = {} if case.beside else {crash: one.read_back for crash, one in after.items()}
    return Recorded(case.name, plain.trace, plain.transactions, _outcomes(result), read_back)


def every_moment(transactions: int) -> list[Crash]:
    return [Crash(when, at) for when in WHENS for at in range(1, transactions + 1)]


def _outcomes(results: dict[Crash, list[Entry]]) -> list[Outcome]:
    """Crashes with the same differences together."""
    outcomes: list[tuple[list[Crash], list[Entry]]] = []
    for crash, differing in results.items():
        same = next((moments for moments, known in outcomes if known == differing), None)
        if same is None:
            outcomes.append(([crash], differing))
        else:
            same.append(crash)
    return [Outcome(moments, differing) for moments, differing in outcomes]


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What came of playing a case without a crash."""

    changed: str
    """Where its trace differs from the recorded one, in words. Empty: nowhere."""
    transactions: int


async def undisturbed(kernel: Kernel, case: Case, known: Recorded) -> Undisturbed:
    now = await played(kernel, case)
    result = differences(now.trace, known.trace)
    return Undisturbed(in_words(result) if result else "", now.transactions)


async def changed_after(kernel: Kernel, case: Case, known: Recorded, crashes: Iterable[Crash]) -> list[str]:
    """The same after each of the crashes."""
    messages = list[str]()
    for crash in crashes:
        if words := _changed(await played(kernel, case, crash), known, crash):
            messages.append(f"killed {crash.when} transaction {crash.at}: {words}")
    return messages


def _changed(now: Played, known: Recorded, crash: Crash) -> str:
    """Where a moment has no meaning of its own, any outcome that was recorded will do."""
    result, recorded = differences(now.trace, known.trace), known.after(crash)
    allowed = [recorded] if known.read_back else [one.differences for one in known.outcomes]
    if result not in allowed:
        return _against(result, recorded)
    counts = known.read_back.get(crash, now.read_back)
    return "" if now.read_back == counts else f"calls read back were {counts} and are {now.read_back}"


def _against(results: Sequence[Entry], recorded: Sequence[Entry] | None) -> str:
    if not recorded:
        return in_words(results)
    if not results:
        return f"as undisturbed, where this was recorded: {in_words(recorded)}"
    return f"{in_words(results)}, where this was recorded: {in_words(recorded)}"
