"""Ours in place of chat models that a package builds by name, as `init_chat_model("openai:gpt-5")` does.

The only home of that exchange, so that such a package runs without a change. Knows no run. It is in force while a graph
is built and while it is executed, since packages build models at either time. Where `langchain` is not installed,
nothing can ask it for a model.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from offing.core.errors import InvalidInput, OffingError
from offing.langchain.chat import OffingChatModel

ANY = "*"
"""In place of a model's name: every other one."""

PLACE, MAKER = "langchain.chat_models.base", "_init_chat_model_helper"
"""The function of langchain through which all of its ways to name a model lead."""

_roles: ContextVar[Mapping[str, str] | None] = ContextVar("offing_models_by_name", default=None)


class UnknownModel(OffingError):
    """A package asked for a model by a name that stands for no role of its graph."""

    code = "unknown_model"


@contextmanager
def models_by_name(roles: Mapping[str, str]) -> Generator[None]:
    """Within, a model that langchain is asked for by name is ours, in the role that `roles` gives for the name.

    Names are written as the package writes them: `openai:gpt-5`, or without the provider. `*` is any other; without it,
    a name that is not there raises UnknownModel, because its calls would go past the run. No roles: nothing is changed.
    """
    if not roles:
        yield
        return
    _route()
    token = _roles.set(roles)
    try:
        yield
    finally:
        _roles.reset(token)


def check_names(roles: Mapping[str, str], models: tuple[str, ...]) -> None:
    """Raises InvalidInput for a name that leads to a role which the graph does not declare."""
    for name, role in roles.items():
        if role not in models:
            raise InvalidInput("by_name", f"{name!r} leads to {role!r}", f"Use one of models: {', '.join(models)}.")


def role_for(name: str, provider: str, roles: Mapping[str, str]) -> str:
    """The role of a model's name. Raises UnknownModel."""
    for known in (f"{provider}:{name}", name, name.partition(":")[2], ANY):
        if known in roles:
            return roles[known]
    raise UnknownModel(f"The graph asks for the model {name!r}; name the role that stands for it in by_name.")


@cache
def _route() -> None:
    """Have langchain ask here first, from now on. Done once a process, and without effect outside `models_by_name`."""
    if find_spec("langchain") is None:
        return
    place: Any = import_module(PLACE)
    make: Callable[..., Any] | None = getattr(place, MAKER, None)
    if make is None:
        raise InvalidInput("by_name", f"this langchain has no {PLACE}.{MAKER}", "Give the graph an OffingChatModel.")

    def made(model: str, *, model_provider: str | None = None, **options: Any) -> Any:
        if (roles := _roles.get()) is None:
            return make(model, model_provider=model_provider, **options)
        return OffingChatModel(role_for(model, model_provider or "", roles))

    setattr(place, MAKER, made)
