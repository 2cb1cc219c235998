"""Times of a schedule in the five fields of cron. The functions are pure."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from offing.core.errors import InvalidInput

FIELD_COUNT = 5


def find_next_time(
    schedule: str, timezone: str | None, after: datetime, end_time: datetime | None = None
) -> datetime | None:
    """Return the first time of a schedule after a moment, in UTC. `None` means that there is none before `end_time`.

    `timezone` is a name such as `Europe/Oslo`, and `None` means UTC. A time that a change of the clock skips comes as
    soon as the clock has changed, and one that it repeats comes once. Raises InvalidInput.
    """
    zone = parse_timezone(timezone)
    try:
        if len(schedule.split()) != FIELD_COUNT:
            raise CronSimError("Wrong number of fields")
        moment = next(CronSim(schedule, after.astimezone(zone)))
    except CronSimError as error:
        remedy = "Send minute, hour, day of the month, month and day of the week, such as `0 9 * * 1`."
        raise InvalidInput(
            "schedule", f"{schedule[:100]!r} is not in the five fields of cron: {error}", remedy
        ) from error
    except (StopIteration, OverflowError):
        raise InvalidInput("schedule", "it has no time", "Send a day that exists.") from None
    at = moment.astimezone(UTC)
    return None if end_time is not None and at > end_time else at


def parse_timezone(name: str | None) -> tzinfo:
    """Return a time zone by its name. `None` means UTC. Raises InvalidInput."""
    if name is None or name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput("timezone", f"{name[:100]!r} is no time zone", "Send a name such as Europe/Oslo.") from None
