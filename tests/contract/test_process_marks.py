"""Which process a run belongs to: a number that another process has got meanwhile is not its own."""

from __future__ import annotations

import os

import pytest

from ragauge.contract import provenance


@pytest.fixture
def marks() -> tuple[str, str, str]:
    mark = provenance.process_mark(os.getpid())
    if not mark:
        pytest.skip("the system does not tell when a process was started")
    boot, space, ticks = mark.split(" ")
    return boot, space, ticks


def alive(**tags: str) -> bool | None:
    told = provenance.process_tags() | {f"ragauge.{name}": value for name, value in tags.items()}
    return provenance.process_alive(told)


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone(marks: tuple[str, str, str]) -> None:
    boot, space, ticks = marks
    assert alive() is True
    assert alive(process=f"{boot} {space} {int(ticks) - 1}") is False  # an earlier one of this number
    assert alive(process=f"another-boot {space} {ticks}") is False


def test_of_a_process_that_cannot_be_seen_nothing_is_known(marks: tuple[str, str, str]) -> None:
    boot, _, ticks = marks
    assert alive(process=f"{boot} pid:[1] {int(ticks) - 1}") is None
    assert alive(host="other/0") is None
