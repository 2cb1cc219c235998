"""Type variables of roles and their prompt formats."""

from typing import TypeVar

from pydantic import BaseModel

Input = TypeVar("Input", bound=BaseModel)
Output = TypeVar("Output", bound=BaseModel)
