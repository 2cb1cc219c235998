"""`offing new graph`: a package with a graph and tests that pass. The only home of its rendering."""

import keyword
import re
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from offing.core.errors import InvalidInput

app = App(name="new", help="Begin something of your own.")

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
Template = Literal["small", "full"]
PACKAGE = "package"
"""A template's folder that gets the graph's name."""


@app.command
def graph(name: str, *, template: Template = "small", into: Annotated[Path, Parameter(negative="")] = Path()) -> int:
    """Make a package with a graph and tests that pass.

    Parameters
    ----------
    name
        Of the graph and its package: small letters, digits and underscores, such as harbour.
    template
        small: a LangGraph agent over the library, with five of Offing's names. full: roles with prompts and forms of
        their own, a tool, and a report that is written sentence by sentence; it works without a model.
    into
        The folder in which the package's own folder is made.
    """
    checked(name)
    folder = into / name
    if folder.exists():
        raise InvalidInput("--into", f"{folder} is there already", "Name another folder, or another graph.")
    for path, text in rendered(name, template).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"{folder} is there. Next:", file=sys.stderr)
    for line in (f"cd {folder}", "pytest", f"offing graph check {name} --path .", "offing dev --path ."):
        print(f"  {line}")
    return 0


def rendered(name: str, template: Template = "small") -> dict[str, str]:
    """The files of a new graph: text by its place in the package's folder."""
    title = name.replace("_", " ").capitalize()
    folder = TEMPLATES / template
    found = sorted(path for path in folder.rglob("*.tmpl"))
    texts = {path.relative_to(folder).as_posix().removesuffix(".tmpl"): path.read_text("utf-8") for path in found}
    return {
        re.sub(f"^{PACKAGE}/", f"{name}/", place): text.replace("__NAME__", name).replace("__TITLE__", title)
        for place, text in texts.items()
    }


def checked(name: str) -> None:
    """Raises InvalidInput for a name that a package or a graph cannot have."""
    remedy = "Use small letters, digits and underscores, beginning with a letter, 40 at most."
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or keyword.iskeyword(name):
        raise InvalidInput("NAME", f"{name!r} is no name for a package", remedy)
    taken = any(point.name == name for point in entry_points(group="offing.graphs"))
    if taken or name in sys.stdlib_module_names or name == "tests" or find_spec(name) is not None:
        raise InvalidInput("NAME", f"{name!r} is the name of something that is installed", "Choose another.")
