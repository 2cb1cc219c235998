"""Cases recorded anew, and compared with what is recorded."""

from collections.abc import Iterable, Sequence

from tests.traces.cases import Case
from tests.traces.files import WHENS, Outcome, Recorded, in_words
from tests.traces.kernel import Kernel
from tests.traces.neutral import Entry, differences
from tests.traces.playing import Crash, Played, played


class Unsteady(Exception):
    """A case that was played twice left two traces."""


async def recorded_anew(kernel: Kernel, case: Case, *, crashes: bool = True) -> Recorded:
    """Undisturbed, twice, and with a crash at every moment. Raises Unsteady."""
    plain, again = await played(kernel, case), await played(kernel, case)
    if found := differences(again.trace, plain.trace):
        raise Unsteady(f"{case.name}: {in_words(found)}")
    after = {crash: await played(kernel, case, crash) for crash in every_moment(plain.transactions if crashes else 0)}
    found = {crash: differences(one.trace, plain.trace) for crash, one in after.items()}
    return Recorded(case.name, plain.trace, plain.transactions, _outcomes(found), _read_back(after))


def every_moment(transactions: int) -> list[Crash]:
    return [Crash(when, at) for when in WHENS for at in range(1, transactions + 1)]


def _outcomes(found: dict[Crash, list[Entry]]) -> list[Outcome]:
    """Crashes with the same differences together."""
    outcomes: list[tuple[list[Crash], list[Entry]]] = []
    for crash, differing in found.items():
        same = next((moments for moments, known in outcomes if known == differing), None)
        if same is None:
            outcomes.append(([crash], differing))
        else:
            same.append(crash)
    return [Outcome(moments, differing) for moments, differing in outcomes]


def _read_back(after: dict[Crash, Played]) -> dict[str, str]:
    def told(crash: Crash) -> str:
        return "+".join(map(str, after[crash].read_back)) or "-"

    return {when: " ".join(told(crash) for crash in after if crash.when == when) for when in WHENS}


async def changed(kernel: Kernel, case: Case, known: Recorded) -> str:
    """Where the undisturbed trace differs from the recorded one, in words. Empty: nowhere."""
    found = differences((await played(kernel, case)).trace, known.trace)
    return in_words(found) if found else ""


async def changed_after(kernel: Kernel, case: Case, known: Recorded, crashes: Iterable[Crash]) -> list[str]:
    """The same after each of the crashes."""
    told = list[str]()
    for crash in crashes:
        found = differences((await played(kernel, case, crash)).trace, known.trace)
        if found not in _expected(case, known, crash):
            told.append(f"killed {crash.when} transaction {crash.at}: {_against(found, known.after(crash))}")
    return told


def _expected(case: Case, known: Recorded, crash: Crash) -> list[Sequence[Entry]]:
    """What may be found. Where branches run side by side, which of them a number meets is chance."""
    if case.beside:
        return [one.differences for one in known.outcomes]
    return [found for found in [known.after(crash)] if found is not None]


def _against(found: Sequence[Entry], recorded: Sequence[Entry] | None) -> str:
    if not recorded:
        return in_words(found)
    if not found:
        return f"as undisturbed, where this was recorded: {in_words(recorded)}"
    return f"{in_words(found)}, where this was recorded: {in_words(recorded)}"
