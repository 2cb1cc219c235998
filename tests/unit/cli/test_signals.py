"""`offing signals`: what is rejected before anything is read or stored."""

import pytest

from offing.cli.signals import rate
from offing.core.errors import InvalidInput


@pytest.mark.parametrize("value", [-1.5, 2.0, float("nan")])
def test_a_rating_out_of_range_is_rejected_with_the_range(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"VALUE.*from -1 to 1"):
        rate("9f04c2", value)
