"""The folder in which a job keeps what it reuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Workplace(Protocol):
    """The folder of a job's reusable data: stage outputs, vectors, the call ledger."""

    root: Path


@dataclass
class FreshWorkplace:
    """An empty workplace, for measuring durations.

    Calls of chat models without their own ledger go into the one at `ledger_root`, so that their cost counts. The salt
    keeps earlier replies to the same requests from answering at once. `cold` is filled with the ways in which requests
    were kept from what the server had computed of earlier ones.
    """

    root: Path
    ledger_root: Path
    salt: str
    cold: set[str] = field(default_factory=set)
