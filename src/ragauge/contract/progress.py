"""Progress bars that appear only where somebody watches and the work is long."""

from __future__ import annotations

from tqdm import tqdm


def progress(total: int | None, what: str, unit: str = "it") -> tqdm:
    """A tqdm bar that shows after one second of work, on a terminal only, and leaves no line behind."""
    return tqdm(total=total, desc=what, unit=unit, delay=1.0, leave=False, disable=None, dynamic_ncols=True)
