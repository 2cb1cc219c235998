"""Elements of WordprocessingML."""

from collections.abc import Mapping
from typing import Any

import docx.oxml
from docx.oxml.ns import qn

_new_element: Any = docx.oxml.__dict__["OxmlElement"]  # the package states only a part of its type


def make_element(tag: str, attributes: Mapping[str, str] | None = None) -> Any:
    """Return an element such as `w:p` with attributes such as `w:val`."""
    element = _new_element(tag)
    for name, value in (attributes or {}).items():
        element.set(qn(name), value)
    return element
