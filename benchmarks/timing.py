"""Medians of interleaved runs, and rows of Markdown tables: what the benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any


def interleaved(
    works: Mapping[str, Callable[[], Any]], runs: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of each work, the median over rounds in which each runs once, and what it returned last.

    With time.process_time as the clock they are those of the processor, which other processes do not lengthen.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    results: dict[str, Any] = {}
    for _ in range(runs):
        for name, work in works.items():
            start = clock()
            results[name] = work()
            seconds[name].append(clock() - start)
    return {name: median(taken) for name, taken in seconds.items()}, results


def print_row(*cells: str) -> None:
    """Prints a row of a table at once, so that a long benchmark shows how far it is."""
    print("| " + " | ".join(cells) + " |", flush=True)


def print_header(*names: str) -> None:
    """Prints the head of a table."""
    print_row(*names)
    print("|" + "---|" * len(names))


def against(goal: float, value: float, at_most: bool = False) -> str:
    """What is aimed at, as the end of a cell, and whether the value is at least (or at most) that."""
    reached = value <= goal if at_most else value >= goal
    return f" (goal: {'at most ' if at_most else ''}{goal:,g}, {'reached' if reached else 'missed'})"
