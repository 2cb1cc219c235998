"""pyarrow, which brings no types. The only import of it."""

from importlib import import_module
from typing import Any

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
