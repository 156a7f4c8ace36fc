"""How numbers are written, at the edges where another way of writing begins."""

from __future__ import annotations

import math

import pytest

from ragauge.contract.finding import Kind, Num
from ragauge.show.formats import interval, written


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.12345, "score", "0.123"), (-0.5, "score", "−0.500"), (0.25, "signed", "+0.250"), (-0.25, "signed", "−0.250"),
        (0.1234, "share", "12.3 %"), (0.05, "points", "+5.0"), (-0.051, "points", "−5.1"),
        (0.0, "p", "< 0.001"), (0.00099, "p", "< 0.001"), (0.001, "p", "0.001"), (0.04, "p", "0.040"),
        (1234567.0, "whole", "1,234,567"), (0.0, "usd", "0.00"), (0.5, "usd", "0.5000"), (1.0, "usd", "1.00"),
        (1234.5, "usd", "1,234.50"), (119.9, "seconds", "119.9 s"), (120.0, "seconds", "2.0 min"),
        (0.0421, "milliseconds", "42 ms"), (1.0, "milliseconds", "1.0 s"), (180.0, "milliseconds", "3.0 min"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_its_kind(value: float, kind: Kind, text: str) -> None:
    assert written(value, kind) == text


@pytest.mark.parametrize("kind", ["score", "signed", "share", "points", "p", "whole", "usd", "seconds", "milliseconds"])
@pytest.mark.parametrize("value", [None, math.nan])
def test_a_number_that_is_not_known_is_a_dash(value: float | None, kind: Kind) -> None:
    assert written(value, kind) == "–"


def test_an_interval_needs_both_ends() -> None:
    assert interval(Num(0.5, "score", 0.25, 0.75)) == "0.250 to 0.750"
    assert interval(Num(0.5, "share", 0.0, 1.0)) == "0.0 % to 100.0 %"
    for lo, hi in [(None, 0.75), (0.25, None), (math.nan, 0.75), (0.25, math.nan)]:
        assert interval(Num(0.5, "score", lo, hi)) == ""
