"""The pyarrow modules, imported here once because they have no type information."""

from importlib import import_module
from typing import Any

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
