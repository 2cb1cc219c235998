"""The router without a model: an estimate by the number of parts of the question."""

from offing_graphs.extractive.question import is_comparison
from offing_graphs.router.schemas import Chance, Mode, Route, RouterInput


def estimate_by_words(inputs: RouterInput) -> Route:
    """Estimate by the number of parts: the fewer parts, the more likely that few searches are sufficient.

    A comparison needs searches for both of its sides.
    """
    more = len(inputs.parts) - 1
    compared = any(map(is_comparison, inputs.parts))
    looks = {Mode.INSTANT: 0.9 - 0.25 * more, Mode.REASONING: 0.9, Mode.AGENTIC: 0.95}
    if compared:
        looks |= {Mode.INSTANT: 0.4, Mode.REASONING: 0.8}
    why = f"{more + 1} parts by its words" + (", some of them compared." if compared else ".") if more else "One part."
    return Route(why=why, chances=tuple(Chance(mode=o.mode, chance=max(0.0, looks[o.mode])) for o in inputs.options))
