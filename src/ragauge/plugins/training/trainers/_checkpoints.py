"""Checkpoints on disk: finds the latest complete one, and recognises torch's errors on a full disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragauge.contract.plain_files import plain_files, read_json_object, remove_all
from ragauge.retrieval.pretrained import quiet as quiet_loading

BEST = "best.safetensors"  # below the checkpoints: the weights of the best step so far
STATE = "trainer_state.json"  # the last file of a checkpoint that transformers writes

_FULL = 16 << 20  # bytes of free space, below which a failed write of torch is one of a full disk


def last_checkpoint(folder: Path) -> Path | None:
    """The latest complete checkpoint; removes links and those that a killed process left incomplete."""
    whole = []
    steps = {int(step): path for path in folder.glob("checkpoint-*") if (step := path.name[11:]).isdecimal()}
    for _, found in sorted(steps.items()):
        try:
            read_json_object(found / STATE, links=False)
            for _ in plain_files(found):  # raises where one is none: the store may be shared
                pass
            whole.append(found)
        except (OSError, ValueError):
            with suppress(OSError):
                remove_all(found)
    (folder / f"{BEST}.new").unlink(missing_ok=True)
    return whole[-1] if whole else None


@contextmanager
def told_as_full(folder: Path) -> Iterator[None]:
    """Raises OSError(ENOSPC) for a write of torch that failed on a full disk."""
    try:
        yield
    except RuntimeError as error:
        writes = "inline_container" in str(error) or "PytorchStreamWriter" in str(error)
        if writes and shutil.disk_usage(folder).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise


@contextmanager
def quiet() -> Iterator[None]:
    """Silences progress bars and notices of transformers and datasets."""
    import datasets.utils.logging as of_datasets

    of_datasets.set_verbosity_error()
    of_datasets.disable_progress_bar()
    with quiet_loading():
        yield
