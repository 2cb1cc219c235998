"""What the scorers share that ask an engine: the choice of the engine, and a call whose failure is never a value."""

from dataclasses import dataclass
from typing import Any, Generic

from pydantic import BaseModel

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, EngineFailure, parse_engine
from offing.models.credentials import resolve_endpoint
from offing.models.engine import ENGINES, RoleRequest, UsageMeter, create_engine
from offing.scorers.scorer import ScoringFailure, ScoringInput
from offing.sdk import Role
from offing.sdk.type_vars import Output

MAX_REPORT_CHARS = 24_000
"""Maximum number of code points of a report that are shown to a judge."""


class JudgeOptions(BaseModel, frozen=True, extra="forbid"):
    """The options that every judge has."""

    engine: EngineConfig | str
    """Engine of the judge: an engine config, or a string such as `litellm:provider/model`."""

    def engine_config(self) -> EngineConfig:
        return parse_engine(self.engine) if isinstance(self.engine, str) else self.engine


@dataclass(frozen=True, slots=True)
class Judgment(Generic[Output]):
    """The output of a judge."""

    output: Output
    judge: str
    """Engine and model, as `engine:model`."""


def check_judge(scorer: str, options: JudgeOptions) -> None:
    """Check that the engine can judge. Raises `InvalidInput` that names the option."""
    check_judge_engine(options.engine_config(), f"scorers.{scorer}.engine")


def check_judge_engine(choice: EngineConfig, field: str) -> None:
    """Check that the engine can judge. Raises `InvalidInput` for `field`."""
    if choice.engine not in ENGINES or choice.engine in ("extractive", "rules"):
        raise InvalidInput(field, f"{choice.engine!r} cannot rate rollouts", "For example, use litellm:provider/model.")
    if choice.engine == "litellm" and isinstance(to := resolve_endpoint(choice, environment.VARIABLES), EngineFailure):
        name, _, reason = to.message.partition(": ")
        problem, _, remedy = reason.partition(". ")
        raise InvalidInput(f"{field}.{name}", problem, remedy)


async def ask_judge(
    role: Role[Any, Output],
    case: BaseModel,
    options: JudgeOptions,
    scoring_input: ScoringInput,
    meter: UsageMeter,
    *,
    call_number: int = 1,
) -> Judgment[Output] | ScoringFailure:
    """Call the judge once, which repeats an answer that cannot be parsed. `call_number` counts from 1."""
    choice = options.engine_config()
    engine = create_engine(choice)
    if isinstance(engine, EngineFailure):
        return ScoringFailure(engine.message)
    path = "" if call_number == 1 else f"call {call_number}"
    find_provider = scoring_input.find_provider
    request = RoleRequest(
        role, case, choice, call_number, scoring_input.seed, meter, call_path=path, find_provider=find_provider
    )
    response = await engine.answer(request)
    if isinstance(response, EngineFailure):
        return ScoringFailure(f"{response.kind}: {response.message}")
    assert isinstance(response.output, role.output)
    return Judgment(response.output, f"{choice.engine}:{response.model}")
