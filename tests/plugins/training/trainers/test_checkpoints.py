"""The latest whole checkpoint of a training, and a write that failed because the disk is full."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from ragauge.plugins.training.trainers._checkpoints import BEST, STATE, last_checkpoint, told_as_full


def checkpoint(folder: Path, step: int, state: str | None = "{}") -> Path:
    found = folder / f"checkpoint-{step}"
    found.mkdir(parents=True)
    if state is not None:
        (found / STATE).write_text(state)
    return found


def test_the_latest_is_that_of_most_steps(tmp_path: Path) -> None:
    for step in (9, 100, 20):
        checkpoint(tmp_path, step)
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-100"
    assert last_checkpoint(tmp_path / "nowhere") is None


@pytest.mark.parametrize("state", [None, "", '{"global_step": 3'], ids=["none", "empty", "half"])
def test_what_was_left_half_written_is_removed_and_the_one_before_taken(tmp_path: Path, state: str | None) -> None:
    whole, half = checkpoint(tmp_path, 2), checkpoint(tmp_path, 3, state)
    for name in (BEST, f"{BEST}.new"):
        (tmp_path / name).write_bytes(b"weights")
    assert last_checkpoint(tmp_path) == whole
    assert not half.exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [BEST]


@pytest.mark.parametrize(
    ("said", "free", "full"),
    [
        ("[enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0", 100, True),
        ("PytorchStreamWriter failed writing file data/0: file write failed", 100, True),
        ("PytorchStreamWriter failed writing file data/0: file write failed", 17 << 20, False),
        ("mat1 and mat2 shapes cannot be multiplied", 100, False),
    ],
)
def test_an_error_of_torch_s_writing_is_a_full_disk_where_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, free: int, full: bool
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError if full else RuntimeError) as told, told_as_full(tmp_path):
        raise RuntimeError(said)
    if full:
        assert isinstance(told.value, OSError)
        assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(tmp_path))
    else:
        assert str(told.value) == said


def test_a_checkpoint_with_a_pipe_a_link_or_an_odd_name_is_not_taken_up(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, 100)
    os.mkfifo(checkpoint(tmp_path, 200) / "optimizer.pt")
    (tmp_path / "checkpoint-300").symlink_to(whole)
    (tmp_path / "checkpoint-last").mkdir()
    state = checkpoint(tmp_path, 400) / "trainer_state.json"
    state.unlink()
    os.mkfifo(state)
    assert last_checkpoint(tmp_path) == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-100", "checkpoint-last"]
