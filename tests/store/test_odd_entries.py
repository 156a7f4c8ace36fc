"""Entries that somebody else left in a shared store: only plain files of their own are read, all else is damage."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.plugins.upkeep.command import main
from ragauge.store import KEY_FILE, Key, Store
from ragauge.store.vectors import VectorCache

KEY = Key("values", 1, {"a": 1})
FRAMES = {"x": pd.DataFrame({"a": [1, 2]})}


def edited(**values: object) -> Callable[[Path], None]:
    def edit(entry: Path) -> None:
        known = json.loads((entry / KEY_FILE).read_text())
        (entry / KEY_FILE).write_text(json.dumps({**known, **values}))

    return edit


def written(text: str) -> Callable[[Path], None]:
    return lambda entry: (entry / KEY_FILE).write_text(text) and None


def more_files(**files: str) -> Callable[[Path], None]:
    def edit(entry: Path) -> None:
        known = json.loads((entry / KEY_FILE).read_text())
        edited(files={**known["files"], **files})(entry)

    return edit


def pipe(name: str) -> Callable[[Path], None]:
    def make(entry: Path) -> None:
        (entry / name).unlink(missing_ok=True)
        os.mkfifo(entry / name)

    return make


def link(name: str, target: str) -> Callable[[Path], None]:
    def make(entry: Path) -> None:
        (entry / name).unlink(missing_ok=True)
        (entry / name).symlink_to(target)

    return make


def replaced_by_link(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.symlink_to("/nonexistent/x")


def moved_and_linked(entry: Path) -> None:
    entry.rename(entry.parent / "elsewhere")
    entry.symlink_to(entry.parent / "elsewhere")


def a_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("x")


ODD = {
    "key.json is null": written("null"),
    "key.json is a list": written("[]"),
    "key.json is a number": written("5"),
    "key.json is a number of 5,000 digits": written('{"stage": ' + "9" * 5000 + "}"),
    "key.json is nested 100,000 deep": written("[" * 100_000),
    "params are nested 2,000 deep": written('{"params": ' + '{"a": ' * 2000 + "1" + "}" * 2001),
    "key.json is a pipe": pipe(KEY_FILE),
    "key.json is a link to a device": link(KEY_FILE, "/dev/zero"),
    "the frame is a pipe": pipe("x.parquet"),
    "the frame is a link to a device": link("x.parquet", "/dev/zero"),
    "a pipe beside the frame": pipe("more"),
    "a link to a folder beside the frame": link("more", "/"),
    "files is null": edited(files=None),
    "files is missing its checksums": edited(files={}),
    "a checksum is null": edited(files={"x.parquet": None}),
    "files names a device": more_files(**{"/dev/zero": "0" * 64}),
    "files names a folder above": more_files(**{"../../../x": "0" * 64}),
    "files names a NUL": more_files(**{"a\0b": "0" * 64}),
    "files names a lone surrogate": more_files(**{"a\ud800": "0" * 64}),
    "frames is missing": edited(frames={}),
    "seconds is null": edited(seconds=None),
    "told is a list": edited(told=[1]),
    "the entry is a link to nothing": replaced_by_link,
    "the entry is a link to a folder": moved_and_linked,
    "the entry is a file": a_file,
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_entry_is_damaged_and_made_again(
    odd: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    ODD[odd](Store(tmp_path).get_frames(KEY, lambda: FRAMES).path)
    assert main(["ls", "--store", str(tmp_path)]) == 0
    assert KEY.digest[:12] in capsys.readouterr().out
    assert main(["verify", "--store", str(tmp_path)]) == 2
    assert "1 entries and 0 segments of vectors read, 1 damaged" in capsys.readouterr().out
    entry = Store(tmp_path).get_frames(KEY, lambda: FRAMES)
    assert entry.made
    assert "is damaged (" in caplog.text
    assert entry.frame("x")["a"].tolist() == [1, 2]
    assert list((tmp_path / ".drafts").iterdir()) == []


@pytest.mark.parametrize("odd", ["key.json is a pipe", "the entry is a link to a folder", "the entry is a file"])
def test_verify_deletes_an_odd_entry_and_nothing_that_it_leads_to(odd: str, tmp_path: Path) -> None:
    entry = Store(tmp_path).get_frames(KEY, lambda: FRAMES).path
    ODD[odd](entry)
    if (key := entry.parent / "elsewhere" / KEY_FILE).exists():
        os.utime(key, (1000, 1000))
        assert Store(tmp_path).find(KEY) is None
        assert key.stat().st_mtime == 1000  # no use of what a link leads to
    assert main(["verify", "--delete", "--store", str(tmp_path)]) == 2
    assert not os.path.lexists(entry)
    elsewhere = entry.parent / "elsewhere"
    assert not elsewhere.exists() or (elsewhere / "x.parquet").is_file()


def test_a_file_browser_s_hidden_file_is_no_damage(tmp_path: Path) -> None:
    (Store(tmp_path).get_frames(KEY, lambda: FRAMES).path / ".DS_Store").write_text("x")
    assert not Store(tmp_path).get_frames(KEY, lambda: FRAMES).made


def _vectors_are_a_pipe(segment: Path) -> None:
    pipe("vectors.npy")(segment)


def _checksums_are_deep(segment: Path) -> None:
    (segment / "checksums.json").write_text("[" * 100_000)


def _segment_is_a_dangling_link(segment: Path) -> None:
    shutil.rmtree(segment)
    segment.symlink_to("/nonexistent/x")


@pytest.mark.parametrize("odd", [_vectors_are_a_pipe, _checksums_are_deep, _segment_is_a_dangling_link])
def test_an_odd_segment_of_vectors_is_computed_again(odd: Callable[[Path], None], tmp_path: Path) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[float(len(text))] for text in texts], dtype=np.float32)

    VectorCache(tmp_path, "model", "embedding").get(["abc"], embed)
    [segment] = (tmp_path / "vectors" / "model").glob("segment-*")
    odd(segment)
    assert main(["verify", "--store", str(tmp_path)]) == 2
    assert VectorCache(tmp_path, "model", "embedding").get(["abc"], embed).tolist() == [[3.0]]
    assert main(["verify", "--store", str(tmp_path)]) == 0
