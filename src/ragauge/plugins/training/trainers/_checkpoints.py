"""Checkpoints on disk: the latest whole one, and what a full disk looks like to torch."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragauge.retrieval.pretrained import quiet as quiet_loading

BEST = "best.safetensors"  # below the checkpoints: the weights of the best step so far
STATE = "trainer_state.json"  # the last file of a checkpoint that transformers writes

_FULL = 16 << 20  # bytes of free space, below which a failed write of torch is one of a full disk


def last_checkpoint(folder: Path) -> Path | None:
    """The latest whole checkpoint; what a killed process left half written is removed."""
    whole = []
    for found in sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2])):
        try:
            json.loads((found / STATE).read_text(encoding="utf-8"))
            whole.append(found)
        except (OSError, ValueError):
            shutil.rmtree(found, ignore_errors=True)
    (folder / f"{BEST}.new").unlink(missing_ok=True)
    return whole[-1] if whole else None


@contextmanager
def told_as_full(folder: Path) -> Iterator[None]:
    """A write of torch that failed on a full disk as the OSError that it is."""
    try:
        yield
    except RuntimeError as error:
        writes = "inline_container" in str(error) or "PytorchStreamWriter" in str(error)
        if writes and shutil.disk_usage(folder).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise


@contextmanager
def quiet() -> Iterator[None]:
    """No bars and notes of transformers and datasets."""
    import datasets.utils.logging as of_datasets

    of_datasets.set_verbosity_error()
    of_datasets.disable_progress_bar()
    with quiet_loading():
        yield
