"""`offing new graph`: create a package with a graph and passing tests from a template."""

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from offing.core.errors import InvalidInput
from offing.registry import Group, list_names

app = App(name="new", help="Create a package from a template.")

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
Template = Literal["small", "full"]
PACKAGE_PLACEHOLDER = "package"
"""Folder in a template that is renamed to the graph's name."""


@app.command
def graph(name: str, *, template: Template = "small", into: Annotated[Path, Parameter(negative="")] = Path()) -> int:
    """Create a package with a graph and passing tests.

    Parameters
    ----------
    name
        Name of the graph and its package: lower case letters, digits and underscores, such as harbor.
    template
        `small`: a LangGraph agent over the library that uses five names of the SDK. `full`: roles with
        their own prompts and prompt formats, a tool, and a report that is written sentence by sentence.
        It works without a model.
    into
        The folder in which the package folder is created.
    """
    check_name(name)
    folder = into / name
    if folder.exists():
        raise InvalidInput("--into", f"{folder} already exists", "Use another folder or another name.")
    for path, text in render_template(name, template).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"Created {folder}. Next:", file=sys.stderr)
    for line in (f"cd {folder}", "pytest", f"offing graph check {name} --path .", "offing dev --path ."):
        print(f"  {line}")
    return 0


def render_template(name: str, template: Template = "small") -> dict[str, str]:
    """Return the files of a new graph: text by path in the package folder."""
    title = name.replace("_", " ").capitalize()
    folder = TEMPLATES / template
    template_files = sorted(path for path in folder.rglob("*.tmpl"))
    texts = {
        path.relative_to(folder).as_posix().removesuffix(".tmpl"): path.read_text("utf-8") for path in template_files
    }
    return {
        re.sub(f"^{PACKAGE_PLACEHOLDER}/", f"{name}/", file_path): text.replace("__NAME__", name).replace(
            "__TITLE__", title
        )
        for file_path, text in texts.items()
    }


def check_name(name: str) -> None:
    """Raise InvalidInput if a package or a graph cannot have the name."""
    remedy = "Use at most 40 lower case letters, digits and underscores, beginning with a letter."
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or keyword.iskeyword(name):
        raise InvalidInput("NAME", f"{name!r} is not a valid package name", remedy)
    if (
        name in list_names(Group.GRAPHS)
        or name in sys.stdlib_module_names
        or name == "tests"
        or find_spec(name) is not None
    ):
        raise InvalidInput("NAME", f"{name!r} is the name of an installed package or graph", "Use another name.")
