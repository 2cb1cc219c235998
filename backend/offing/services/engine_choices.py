"""Whether the engines that a request names may be asked here, before anything is stored.

The worker judges the same way again before each call; here it is an answer to whoever asks.
"""

import os
from collections.abc import Mapping

from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice, EngineFailure
from offing.models.credentials import destination, policy_destination


def check_engines(engines: Mapping[str, EngineChoice], field: str = "engines") -> None:
    """`check_engine` for the engine of each role."""
    for role, choice in engines.items():
        check_engine(f"{field}.{role}", choice)


def check_engine(field: str, choice: EngineChoice) -> None:
    """Raises InvalidInput for an address that the operator has neither named nor accepted."""
    if choice.engine == "policy":
        found = policy_destination(choice, os.environ) if choice.api_base else None
    else:
        found = destination(choice, os.environ) if choice.engine == "litellm" or choice.api_base else None
    if isinstance(found, EngineFailure):
        place, _, told = found.message.partition(": ")
        problem, _, remedy = told.partition(". ")
        raise InvalidInput(f"{field}.{place}", problem, remedy)
