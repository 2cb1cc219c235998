"""What scores a rollout, each under a name and a version: the rules of `core.scoring`, and a judge with an engine."""

from collections.abc import Mapping

from offing.core.errors import InvalidInput
from offing.scorers.citation_recall import CitationRecall
from offing.scorers.exact_match import ExactMatch
from offing.scorers.numeric import Numeric
from offing.scorers.rubric_judge import RubricJudge
from offing.scorers.scorer import Sample, Score, Scorer, Unscored
from offing.scorers.token_f1 import TokenF1

__all__ = ["Sample", "Score", "Scorer", "Unscored", "named", "registry"]


def registry() -> Mapping[str, Scorer]:
    """Every scorer by name."""
    scorers: tuple[Scorer, ...] = (ExactMatch(), TokenF1(), Numeric(), CitationRecall(), RubricJudge())
    return {scorer.name: scorer for scorer in scorers}


def named(name: str) -> Scorer:
    """Raises InvalidInput for a name that no scorer has."""
    known = registry()
    if name not in known:
        raise InvalidInput("scorers", f"there is no scorer {name!r}", f"Use one of: {', '.join(sorted(known))}.")
    return known[name]
