"""`offing signals`: what people said about a run, and whether Offing may learn from it."""

from typing import Literal

from cyclopts import App

from offing.cli.options import Json
from offing.cli.show import COMMAND_LINE, get_run_id, run_with_database
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.core.training_signal import TextOrigin, TrainingSignal
from offing.services import ratings, training_signals
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rewards import RewardRow
from offing.storage.training_signals import TrainingConsent

app = App(name="signals", help="Training signals: what people said about a run, and whether it may be learned from.")

CONSENTS = {"yes": True, "no": False, "default": None}


@app.command
def show(run: str, *, json: Json = False) -> int:
    """Show what people said about a run, and whether it may be learned from."""

    async def work(database: Database) -> tuple[list[TrainingSignal], TrainingConsent]:
        id = await get_run_id(database, run)
        signals = await training_signals.list_signals(database, LOCAL_TENANT, id)
        return signals, await training_signals.get_consent(database, LOCAL_TENANT, id)

    signals, consent = run_with_database(work)
    if json:
        return print_json({"may_learn": consent.may_learn, "signals": [_to_json(one) for one in signals]})
    print(_describe_consent(consent))
    for one in signals:
        about = " ".join(part for part in (f"version {one.report_version}" if one.report_version else "",
                                           one.sentence_id or "") if part)  # fmt: skip
        value = "" if one.value is None else f"{one.value:+g}"
        print(
            strip_control(f"{one.created_at:%Y-%m-%d %H:%M}  {one.kind}  {one.given_by}  {about}  {value}  {one.text}")
        )
    return 0


@app.command
def rate(run: str, value: float, *, sentence: str = "") -> int:
    """Rate the report of a run, or one of its sentences.

    Parameters
    ----------
    value
        From -1, wrong, to 1, right.
    sentence
        Id of the sentence, as in `offing ask --json`. Default: the whole report.
    """
    if not -1 <= value <= 1:
        raise InvalidInput("VALUE", f"{value:g} is out of range", "Use a number from -1 to 1.")

    async def work(database: Database) -> RewardRow:
        id = await get_run_id(database, run)
        return await ratings.rate_report(
            database, LOCAL_TENANT, id, person=COMMAND_LINE, sentence_id=sentence or None, value=value, correction=""
        )

    print(run_with_database(work).id)
    return 0


@app.command
def correct(run: str, answer: str, *, text_origin: Literal["person", "model", "document"] = "person") -> int:
    """Say what the right answer of a run is.

    Parameters
    ----------
    text_origin
        Who wrote the words of the answer.
    """

    async def work(database: Database) -> TrainingSignal:
        id, origin = await get_run_id(database, run), TextOrigin(text_origin)
        return await training_signals.correct_answer(
            database, LOCAL_TENANT, id, answer, person=COMMAND_LINE, text_origin=origin
        )

    print(run_with_database(work).id)
    return 0


@app.command
def consent(run: str, decision: Literal["yes", "no", "default"]) -> int:
    """Decide whether a run may be learned from. `default`: as the setting `training_opt_in` says."""

    async def work(database: Database) -> TrainingConsent:
        id = await get_run_id(database, run)
        return await training_signals.set_consent(database, LOCAL_TENANT, id, CONSENTS[decision], person=COMMAND_LINE)

    print(_describe_consent(run_with_database(work)))
    return 0


def _describe_consent(consent: TrainingConsent) -> str:
    why = f"decided by {consent.decided_by}" if consent.is_decided else "as training_opt_in says"
    return strip_control(f"may be learned from: {'yes' if consent.may_learn else 'no'} ({why})")


def _to_json(signal: TrainingSignal) -> dict[str, object]:
    return {
        "kind": signal.kind, "id": signal.id, "given_by": signal.given_by, "created_at": signal.created_at.isoformat(),
        "report_version": signal.report_version, "sentence_id": signal.sentence_id, "value": signal.value,
        "text": signal.text, "text_origin": signal.text_origin, "base_version": signal.base_version,
    }  # fmt: skip
