"""Vectors on disk, by hand: slices, pauses, checksums, and what is set aside until nobody reads it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


def test_a_draft_that_another_process_finishes_in_between_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glob = Path.glob

    def seen(folder: Path, pattern: str) -> list[Path]:
        return [folder / "draft-finished"] if pattern == "draft-*" else list(glob(folder, pattern))

    monkeypatch.setattr(Path, "glob", seen)
    assert cache(tmp_path).get(["t1"], numbers_of).shape == (1, len(numbers_of(["t1"])[0]))


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


def test_two_at_once_embed_beside_each_other(tmp_path: Path) -> None:
    """The lock was held while a model worked: on two machines two jobs took as long as on one."""
    together = threading.Barrier(2, timeout=300)

    def embed(texts: list[str]) -> np.ndarray:
        together.wait()  # breaks unless the other one is here as well
        return numbers_of(texts)

    def get(texts: list[str]) -> np.ndarray:
        return cache(tmp_path).get(texts, embed)

    with ThreadPoolExecutor(2) as pool:
        low, high = pool.map(get, ([f"t{i}" for i in range(9)], [f"t{i}" for i in range(9, 20)]))
    assert low[:, 0].tolist() == list(range(9))
    assert high[:, 0].tolist() == list(range(9, 20))
    assert not [file for file in tmp_path.rglob("*") if file.suffix == ".keys"]


def test_who_is_done_between_the_two_looks_of_another_has_not_worked_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors not there yet, and a claim there no more: the text was embedded twice."""
    works, may_end = threading.Event(), threading.Event()
    asked: list[str] = []

    def slowly(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        works.set()
        assert may_end.wait(300)
        return numbers_of(texts)

    def get() -> np.ndarray:
        return cache(tmp_path).get(["t1", "t2"], slowly)

    looks: list[int] = []
    look_up = vectors_on_disk._look_up

    def ends_after_the_look(*given: Any) -> Any:
        found = look_up(*given)
        if threading.current_thread() is threading.main_thread():
            looks.append(1)
            if len(looks) == 2:  # the one under the lock
                may_end.set()
                first.result(30)
        return found

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(get)
        assert works.wait(300)
        monkeypatch.setattr(vectors_on_disk, "_look_up", ends_after_the_look)
        assert get()[:, 0].tolist() == [1, 2]
    assert asked in (["t1", "t2"], ["t2", "t1"])


def test_what_another_embeds_is_waited_for_when_all_else_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_on_disk, "_SLICE", 3)
    monkeypatch.setattr(vectors_on_disk, "_SLICE_SECONDS", 0.0)
    first_works, rest_done = threading.Event(), threading.Event()
    asked: list[str] = []

    def slowly(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        first_works.set()
        assert rest_done.wait(300)
        return numbers_of(texts)

    def embed(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        if texts[-1] == "t9":
            rest_done.set()
        return numbers_of(texts)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(cache(tmp_path).get, ["t1", "t2", "t3"], slowly)
        assert first_works.wait(300)
        found = cache(tmp_path).get([f"t{i}" for i in range(10)], embed)
        assert other.result()[:, 0].tolist() == [1, 2, 3]
    assert found[:, 0].tolist() == list(range(10))
    assert sorted(asked) == [f"t{i}" for i in range(10)]
    assert asked[:3] == ["t1", "t2", "t3"]


def test_what_a_killed_process_was_embedding_is_free_again(tmp_path: Path) -> None:
    work = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from ragauge.store.vectors import VectorCache\n"
        "def embed(texts):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "VectorCache(Path(sys.argv[1]), 'model', 'embedding').get(['t1', 't2'], embed)"
    )
    assert subprocess.run([sys.executable, "-c", work, tmp_path], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.keys"))) == 1
    found = cache(tmp_path).get(["t2", "t3"], numbers_of)
    assert found[:, 0].tolist() == [2, 3]
    assert not list(tmp_path.rglob("*.keys"))


def test_what_could_not_be_embedded_is_free_again(tmp_path: Path) -> None:

    def out_of_memory(texts: list[str]) -> np.ndarray:
        raise MemoryError

    with pytest.raises(MemoryError):
        cache(tmp_path).get(["t1"], out_of_memory)
    assert cache(tmp_path).get(["t1"], numbers_of)[:, 0].tolist() == [1]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.1, [2, 8, 8, 8, 1]), (2.0, [2, 4, 8, 8, 5]), (4.0, [2] * 13 + [1])],
    ids=["fast", "twice", "slow"],
)
def test_slices_of_a_fast_model_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: list[int]
) -> None:
    """Of a fast model each slice of as many was a segment, to be merged: every vector was written twice."""
    monkeypatch.setattr(vectors_on_disk, "_SLICE", 2)
    monkeypatch.setattr(vectors_on_disk, "_MERGED", 8)
    now = [0.0]
    monkeypatch.setattr(vectors_on_disk, "time", instead_of(time, monotonic=lambda: now[0]))
    slices: list[int] = []

    def embed(texts: list[str]) -> np.ndarray:
        slices.append(len(texts))
        now[0] += seconds
        return np.array([[float(text[1:])] for text in texts], dtype=np.float32)

    texts = [f"t{i}" for i in range(27)]
    found = cache(tmp_path).get(texts, embed)
    assert slices == expected
    assert found[:, 0].tolist() == list(range(27))


def test_keys_that_end_or_begin_with_zero_bytes_are_told_apart(tmp_path: Path) -> None:
    width = vectors_on_disk._KEY_BYTES
    raw = [b"\0" * i + b"k" + b"\0" * (width - 1 - i) for i in range(width)] + [b"\0" * width]
    keys = np.array(raw, dtype=f"S{width}")
    vectors = np.arange(len(raw), dtype=np.float32)[:, None]
    vectors_on_disk._write_segment(tmp_path, keys, vectors)
    found, read = vectors_on_disk._look_up(keys[::-1], tmp_path)
    assert found.all()
    assert read is not None
    np.testing.assert_array_equal(read, vectors[::-1])
    assert not vectors_on_disk._look_up(np.array([b"k" * width], dtype=f"S{width}"), tmp_path)[0].any()
