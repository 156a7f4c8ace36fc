"""Vectors on disk, by hand: slices, pauses, checksums, and what is set aside until nobody reads it."""

from __future__ import annotations

import json
import os
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from patched import instead_of
from ragauge.store import vectors as vectors_on_disk
from ragauge.store.vectors import PAIR_SCORES, VectorCache, claims_of


def numbers_of(texts: list[str]) -> np.ndarray:
    return np.array([[float(text[1:])] for text in texts], dtype=np.float32)


def cache(root: Path) -> VectorCache:
    return VectorCache(root, "model", "embedding")


def test_pairs_are_scored_once_the_longest_first_and_told_apart_by_where_they_part(tmp_path: Path) -> None:
    scores = VectorCache(tmp_path, "model", "scoring", PAIR_SCORES)
    asked: list[tuple[str, str]] = []

    def score(pairs: list[tuple[str, str]]) -> np.ndarray:
        asked.extend(pairs)
        return np.array([[10.0 * len(a) + len(b)] for a, b in pairs], dtype=np.float32)

    pairs = [("a", "bc"), ("ab", "c"), ("a", ""), ("", "abcd"), ("abcde", "")]
    expected = [12.0, 21.0, 10.0, 4.0, 50.0]
    assert scores.get(pairs, score)[:, 0].tolist() == expected
    assert asked == [("abcde", ""), ("", "abcd"), ("a", "bc"), ("ab", "c"), ("a", "")]
    assert scores.get(pairs[::-1], score)[:, 0].tolist() == expected[::-1]
    assert len(asked) == 5
    assert [path.name for path in (tmp_path / "pair_scores").iterdir()] == ["model"]


def test_a_slice_has_no_more_than_65536_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = instead_of(time, monotonic=lambda: 0.0)  # a model that takes no time
    monkeypatch.setattr(vectors_on_disk, "time", standing)
    slices: list[int] = []

    def embed(texts: list[str]) -> np.ndarray:
        slices.append(len(texts))
        return np.zeros((len(texts), 1), dtype=np.float32)

    cache(tmp_path).get([f"t{i}" for i in range(256 + 65536 + 3)], embed)
    assert slices == [256, 65536, 3]


def test_pauses_until_another_one_has_embedded_double_up_to_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = vectors_on_disk._text_keys(["t1"])
    claim = claims_of(tmp_path, cache(tmp_path).folder).take(keys)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            vectors_on_disk._write_segment(cache(tmp_path).folder, keys, numbers_of(["t1"]))
            claim.__exit__()

    monkeypatch.setattr(vectors_on_disk, "time", instead_of(time, sleep=sleep))
    found = cache(tmp_path).get(["t1"], lambda texts: pytest.fail("embedded twice"))
    assert found.tolist() == [[1.0]]
    assert pauses[:8] == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0])
    assert pauses[8:] == [0.0]


def test_checksums_of_a_segment_are_crc_32(tmp_path: Path) -> None:
    cache(tmp_path).get(["t1", "t2"], numbers_of)
    (segment,) = cache(tmp_path).folder.iterdir()
    expected = {name: zlib.crc32((segment / name).read_bytes()) for name in ("keys.npy", "vectors.npy")}
    assert json.loads((segment / "checksums.json").read_text()) == expected


def test_drafts_go_when_they_are_older_than_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache(tmp_path).folder
    for name, written in (("draft-older", 999), ("draft-an-hour", 1000)):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (written, written))
    with monkeypatch.context() as patched:
        patched.setattr(vectors_on_disk, "time", instead_of(time, time=lambda: 1000.0 + 3600))
        cache(tmp_path).get(["t1"], numbers_of)
    assert [path.name for path in folder.glob("draft-*")] == ["draft-an-hour"]


def test_old_segments_that_were_merged_stay_for_an_hour_for_who_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cache(tmp_path).folder
    for text in ("t1", "t2"):
        cache(tmp_path).get([text], numbers_of)
    for segment in folder.glob("segment-*"):
        os.utime(segment, (0, 0))
    with monkeypatch.context() as patched:
        patched.setattr(vectors_on_disk, "_MAX_SMALL", 1)
        cache(tmp_path).get(["t3"], numbers_of)  # merges the two
    assert sorted(len(np.load(path / "keys.npy")) for path in folder.glob("segment-*")) == [1, 2]
    cache(tmp_path).get(["t4"], numbers_of)
    assert sorted(np.load(path / "vectors.npy")[0, 0] for path in folder.glob("draft-*")) == [1.0, 2.0]


def test_small_segments_become_some_of_about_the_same_number_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cache(tmp_path).folder
    for first in range(0, 18, 3):
        cache(tmp_path).get([f"t{first + i}" for i in range(3)], numbers_of)
    monkeypatch.setattr(vectors_on_disk, "_MAX_SMALL", 1)
    monkeypatch.setattr(vectors_on_disk, "_MERGED", 5)
    cache(tmp_path).get(["t18"], numbers_of)
    assert sorted(len(np.load(path / "keys.npy")) for path in folder.glob("segment-*")) == [1, 3, 3, 6, 6]
    all_texts = [f"t{i}" for i in range(19)]
    assert cache(tmp_path).get(all_texts, lambda texts: pytest.fail(f"{texts}")).ravel().tolist() == [*range(19)]


def test_a_segment_has_keys_of_16_bytes(tmp_path: Path) -> None:
    cache(tmp_path).get(["t1"], numbers_of)
    [segment] = cache(tmp_path).folder.glob("segment-*")
    keys = np.load(segment / "keys.npy")
    assert keys.dtype.itemsize == 16  # what is on the disk is looked for in no other length
