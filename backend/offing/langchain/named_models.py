"""Replacement of chat models that a package builds by name, as `init_chat_model("openai:gpt-5")` does.

With it, such a package runs without changes. It is active while a graph is built and while it is
executed, since packages build models at either time. If `langchain` is not installed, there is
nothing to replace.
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

ANY_MODEL = "*"
"""Stands for every model name that is not listed."""

MODULE, MAKER = "langchain.chat_models.base", "_init_chat_model_helper"
"""LangChain's function that resolves every model name."""

_roles: ContextVar[Mapping[str, str] | None] = ContextVar("offing_models_by_name", default=None)


class UnknownModelError(OffingError):
    """A package requested a model by a name that is mapped to no role of its graph."""

    code = "unknown_model"


@contextmanager
def use_models_by_name(roles: Mapping[str, str]) -> Generator[None]:
    """Replace the models that code requests from LangChain by name with ours while the context is open.

    `roles` maps names to roles. Names are written as in the package: `openai:gpt-5`, or without the
    provider. `*` is any other name. Without `*`, an unknown name raises UnknownModelError, because its
    calls would not be recorded. If `roles` is `None`, nothing is replaced.
    """
    if not roles:
        yield
        return
    _install_hook()
    token = _roles.set(roles)
    try:
        yield
    finally:
        _roles.reset(token)


def check_model_names(roles: Mapping[str, str], models: tuple[str, ...]) -> None:
    """Raise InvalidInput if a name is mapped to a role that the graph does not declare."""
    for name, role in roles.items():
        if role not in models:
            raise InvalidInput(
                "models_by_name",
                f"{name!r} is mapped to {role!r}, which is not in `models`",
                f"Use one of models: {', '.join(models)}.",
            )


def get_role_for_model(name: str, provider: str, roles: Mapping[str, str]) -> str:
    """Return the role for a model name. Raises UnknownModelError."""
    for candidate in (f"{provider}:{name}", name, name.partition(":")[2], ANY_MODEL):
        if candidate in roles:
            return roles[candidate]
    raise UnknownModelError(f"The graph requests the model {name!r}. Map it to a role in models_by_name.")


@cache
def _install_hook() -> None:
    """Install the hook in LangChain's model lookup, once per process.

    It has no effect outside `use_models_by_name`.
    """
    if find_spec("langchain") is None:
        return
    module: Any = import_module(MODULE)
    make: Callable[..., Any] | None = getattr(module, MAKER, None)
    if make is None:
        raise InvalidInput(
            "models_by_name",
            f"this version of langchain has no {MODULE}.{MAKER}",
            "Use OffingChatModel in the graph instead.",
        )

    def make_model(model: str, *, model_provider: str | None = None, **options: Any) -> Any:
        if (roles := _roles.get()) is None:
            return make(model, model_provider=model_provider, **options)
        return OffingChatModel(get_role_for_model(model, model_provider or "", roles))

    setattr(module, MAKER, make_model)
