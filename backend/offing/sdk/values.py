"""The type variables of roles and their forms."""

from typing import TypeVar

from pydantic import BaseModel

Input = TypeVar("Input", bound=BaseModel)
Output = TypeVar("Output", bound=BaseModel)
