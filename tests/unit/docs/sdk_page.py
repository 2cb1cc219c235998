"""docs/sdk.md, made from the docstrings of what graph authors import.

    python -m tests.unit.docs.sdk_page [--write]

Without `--write` it prints the page.
"""

import ast
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import offing.sdk
import offing.testing
import offing.testing.graph_checks
from tests.unit.docs.documents import ROOT

PAGE = ROOT / "docs" / "sdk.md"

HEAD = """# The SDK

The names that graph authors import. This page is generated from the docstrings by
`python -m tests.unit.docs.sdk_page --write`. [Graphs of your own](graphs.md) explains how to use them.
"""

PARTS: tuple[tuple[str, ModuleType], ...] = (
    ("Graphs", offing.sdk),
    ("Testing", offing.testing),
    ("Checking", offing.testing.graph_checks),
)


def page() -> str:
    """The page as it must stand."""
    return HEAD + "".join(part for title, module in PARTS for part in _part(title, module))


def _part(title: str, module: ModuleType) -> Iterator[str]:
    yield f"\n## {title}\n\n`from {module.__name__} import …`\n\n{_joined(module.__doc__)}\n"
    for name in sorted(module.__all__, key=str.casefold):
        yield from _entry(name, getattr(module, name))


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"\n### {name}\n\n"
    if isinstance(value, type):
        yield from _class(value)
    elif inspect.isfunction(value):
        yield f"```python\n{_signature(name, value)}\n```\n\n{_text(value)}\n"
    else:
        yield f"A constant or an alias: `{_short(value)}`.\n"


def _class(kind: Any) -> Iterator[str]:
    if text := _own_doc(kind):
        yield f"{text}\n"
    message = _attribute_docs(kind)
    if issubclass(kind, enum.Enum):
        members: Any = kind.__members__
        yield "\n" + "".join(f"- `{n}`{_after(message.get(n, ''))}\n" for n in members)
        return
    fields: dict[str, Any] = inspect.get_annotations(kind)
    lines = [
        f"- `{n}: {_render_annotation(t)}`{_after(message.get(n, ''))}\n"
        for n, t in fields.items()
        if not n.startswith("_")
    ]
    for name, value in dict[str, Any](kind.__dict__).items():
        if not name.startswith("_") and (method := _function(value)) is not None and _text(method):
            lines.append(f"- `{_signature(name, method, value)}`{_after(_text(method, between=' '))}\n")
    yield "\n" + "".join(lines) if lines else ""


def _function(value: Any) -> Callable[..., Any] | None:
    if isinstance(value, property):
        return value.fget
    plain: Any = getattr(value, "__func__", value)
    return plain if inspect.isfunction(plain) else None


def _signature(name: str, function: Callable[..., Any], owner: Any = None) -> str:
    if isinstance(owner, property):
        return f"{name}: {_render_annotation(inspect.signature(function).return_annotation)}"
    signature = inspect.signature(function)
    rendered = [_argument(p) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    text = signature.return_annotation
    returns = "" if text is inspect.Signature.empty else f" -> {_render_annotation(text)}"
    lead = "await " if inspect.iscoroutinefunction(function) else ""
    return " ".join(f"{lead}{name}({', '.join(rendered)}){returns}".split())


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    return _render_annotation(str(parameter))


def _attribute_docs(kind: type) -> dict[str, str]:
    """What the text after each attribute says."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    messages: dict[str, str] = {}
    for one, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            messages |= {t.id: _joined(after.value.value, " ") for t in targets if isinstance(t, ast.Name)}
    return messages


def _own_doc(kind: type) -> str:
    text = kind.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{kind.__name__}(") else _joined(text)


def _text(function: Any, between: str = "\n\n") -> str:
    return _joined(inspect.getdoc(function) if function.__doc__ else "", between)


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _render_annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])|<class '(?:[\w.]+\.)?(\w+)'>", r"\1", text)


def _short(value: Any) -> str:
    text = " ".join(str(value).split()).replace("`", "'")
    return text if len(text) < 90 else f"{text[:89]}…"


def _joined(text: str | None, between: str = "\n\n") -> str:
    return between.join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


def main() -> None:
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
