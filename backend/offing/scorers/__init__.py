"""What scores a rollout, each under a name and a version: the rules of `core.scoring`, and a judge with an engine."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from offing.core.errors import InvalidInput
from offing.scorers.citation_recall import CitationRecall
from offing.scorers.exact_match import ExactMatch
from offing.scorers.numeric import Numeric
from offing.scorers.rubric_judge import RubricJudge
from offing.scorers.scorer import Sample, Score, Scorer, Unscored
from offing.scorers.token_f1 import TokenF1

__all__ = ["Sample", "Score", "Scorer", "Unscored", "named", "registry", "take"]

GROUP = "offing.scorers"
"""Entry point group in which other packages offer theirs."""

_taken: dict[str, Scorer] = {}
"""Those of folders, by name: the latest that this process has loaded."""


BUILT_IN: tuple[Scorer, ...] = (ExactMatch(), TokenF1(), Numeric(), CitationRecall(), RubricJudge())


def registry() -> Mapping[str, Scorer]:
    """Return every scorer by name. A package's scorer cannot replace a built-in one."""
    return {scorer.name: scorer for scorer in (*_installed(), *_taken.values(), *BUILT_IN)}


@cache
def _installed() -> tuple[Scorer, ...]:
    """Scorers of installed packages. Looked up once per process: reading all distributions takes milliseconds."""
    return tuple(point.load() for point in entry_points(group=GROUP))


def take(offers: Mapping[str, object]) -> None:
    """Make scorers of a folder known to this process. Raises InvalidInput for what is none."""
    for name, offer in offers.items():
        parts = ("name", "version", "asks", "reads_report", "lacks", "check", "score")
        if any(not hasattr(offer, part) for part in parts):
            remedy = f"It needs {', '.join(parts)}."
            raise InvalidInput(GROUP, f"{name} is {type(offer).__name__} and no scorer", remedy)
        scorer: Scorer = offer  # pyright: ignore[reportAssignmentType]
        _taken[scorer.name] = scorer


def named(name: str) -> Scorer:
    """Raises InvalidInput for a name that no scorer has."""
    known = registry()
    if name not in known:
        raise InvalidInput("scorers", f"there is no scorer {name!r}", f"Use one of: {', '.join(sorted(known))}.")
    return known[name]
