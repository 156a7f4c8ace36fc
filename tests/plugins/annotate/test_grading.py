"""Verdicts are read exactly or not at all, and quotes become evidence parts, each text once."""

from __future__ import annotations

import pytest

from ragauge.plugins.annotate.grading import ReadGrade, read_verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"grade": 3, "quotes": ["a b c", "a b c"]}', ReadGrade(3, ("a b c",))),
        ('```json\n{"grade": 0, "quotes": []}\n```', ReadGrade(0, ())),
        ('{"grade": 4, "quotes": []}', None),
        ('{"grade": true, "quotes": []}', None),
        ('{"grade": 2.5, "quotes": []}', None),
        ('{"grade": 2.0, "quotes": []}', ReadGrade(2, ())),
        ('{"grade": "2", "quotes": []}', ReadGrade(2, ())),
        ('{"grade": 2}', None),
        ('{"grade": 2, "quotes": [1]}', None),
        ('{"grade": 2, "quotes": "a b c"}', None),
        ('{"grade": 1, "grade": 2, "quotes": []}', None),
        ('[{"grade": 2, "quotes": []}]', None),
        ('Grade: {"grade": 2, "quotes": []}', ReadGrade(2, ())),
        ('{"grade": 2, "quotes": []} or {"grade": 1, "quotes": []}', None),
    ],
)
def test_a_verdict_is_read_where_it_can_mean_one_thing_alone(reply: str, verdict: ReadGrade | None) -> None:
    assert read_verdict(reply) == verdict
