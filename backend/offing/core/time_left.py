"""How much time work of counted parts still needs, judged by its latest parts."""

from collections.abc import Sequence
from statistics import fmean

RECENT_STEPS = 10
"""Number of latest steps from which the time of the others is estimated."""


def estimate_seconds_left(recent_seconds: Sequence[float], remaining: int | None) -> float | None:
    """Return the estimated seconds of the remaining steps, from those of the last ones.

    Returns `None` if it is not known how many remain or how long one takes.
    """
    if remaining is None or not recent_seconds:
        return None
    return max(remaining, 0) * fmean(recent_seconds)


def describe_time_left(seconds: float | None) -> str:
    """Return text such as `about 6 minutes left`. Empty if the time is not known."""
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute left"
    if minutes < 100:
        return f"about {minutes} minute{'s' if minutes > 1 else ''} left"
    return f"about {minutes / 60:.1f} hours left"
