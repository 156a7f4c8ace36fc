"""The stage store: one digest per meaning, one maker, nothing half-written, damage made good."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.store import (
    KEY_FILE,
    Key,
    Store,
    _entries,
    canonical_json,
    default_folder,
    default_ledger,
    link_files,
)

KEY = Key("chunks", 1, {"size": 128, "overlap": 16}, {"docs": "abc"})


def write_text(text: str):
    return lambda folder: (folder / "data.txt").write_text(text, encoding="utf-8")


def refuse(folder: Path) -> None:
    raise AssertionError("made a second time")


def test_digest_is_sha256_of_the_canonical_json() -> None:
    text = '{"inputs":{"docs":"abc"},"params":{"overlap":16,"size":128},"stage":"chunks","version":1}'
    assert KEY.digest == sha256(text.encode())


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": float("nan")})
    with pytest.raises(TypeError):
        canonical_json({"x": object()})


def test_an_entry_tells_what_it_is_made_of_how_long_that_took_and_what_it_cost(store: Store) -> None:
    url = "https://anna:secretword@host/v1"
    key = Key("values", 3, {"depth": 30, "base_url": url}, {"docs": "abc"})
    told: dict[str, Any] = {}

    def make(folder: Path) -> None:
        write_text("one")(folder)
        (folder / "deep").mkdir()
        (folder / "deep" / "more.txt").write_text("two")
        pd.DataFrame({"n": [1, 2, 3]}).to_parquet(folder / "x.parquet")
        time.sleep(0.05)
        told["cost_usd"] = 0.5  # known behind the making alone

    first = store.get(key, make, told)
    again, other = Store(store.root), Store(store.root)
    second = again.get(key, refuse, {"cost_usd": 7.0})
    assert (first.made, second.made, store.made, again.made) == (True, False, ["values"], [])
    assert second.path == store.root / "values" / key.digest
    assert store.used == again.used == {f"values/{key.digest}"}
    assert 0.05 <= first.seconds == first.seconds_made == second.seconds_made < 5
    assert second.seconds == 0
    assert first.told == second.told == {"cost_usd": 0.5}
    assert second.n_rows("x") == 3
    with pytest.raises(DataError, match="holds no frame 'run'"):
        second.frame("run")
    manifest = json.loads((first.path / KEY_FILE).read_text())
    assert "secretword" not in str(manifest["params"].pop("base_url"))
    files = {name: sha256((first.path / name).read_bytes()) for name in ("data.txt", "deep/more.txt", "x.parquet")}
    frame = {"x": frames.content_digest(pd.DataFrame({"n": [1, 2, 3]}))}
    known = {"stage": "values", "version": 3, "params": {"depth": 30}, "inputs": {"docs": "abc"}, "redacted": True}
    assert manifest == {**known, "files": files, "frames": frame, "seconds": first.seconds, "told": first.told}
    plain = json.loads((other.get(KEY, write_text("one")).path / KEY_FILE).read_text())
    assert {"redacted", "told"}.isdisjoint(plain)
    assert {name: plain[name] for name in KEY.as_dict()} == KEY.as_dict()
    assert other.checkpoints(KEY) == store.root / "checkpoints" / KEY.digest


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_where_a_store_and_its_ledger_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAGAUGE_STORE", "RAGAUGE_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    assert (default_folder(), default_ledger(Path("s"))) == (Path(".ragauge"), "s/ledger.db")
    monkeypatch.setenv("RAGAUGE_STORE", "there")
    monkeypatch.setenv("RAGAUGE_LEDGER", "sqlite:///x.db")
    assert (default_folder(), default_ledger(Path("s"))) == (Path("there"), "sqlite:///x.db")


def test_a_failing_maker_leaves_nothing(store: Store) -> None:
    def fail(folder: Path) -> None:
        (folder / "half.txt").write_text("half")
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        store.get(KEY, fail)
    assert store.find(KEY) is None
    assert list((store.root / ".drafts").iterdir()) == []
    assert store.get(KEY, write_text("one")).made


@pytest.mark.parametrize("damage", ["changed", "lost file", "broken manifest", "no manifest"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: str) -> None:
    path = Store(tmp_path).get(KEY, write_text("one")).path
    if damage == "changed":
        (path / "data.txt").write_text("two")
    elif damage == "lost file":
        (path / "data.txt").unlink()
    elif damage == "broken manifest":
        (path / KEY_FILE).write_text('{"files"')
    else:
        (path / KEY_FILE).unlink()
    entry = Store(tmp_path).get(KEY, write_text("one"))
    assert entry.made
    assert (entry.path / "data.txt").read_text() == "one"


def test_frames_come_back_equal_and_are_private_copies(store: Store) -> None:
    docs = pd.DataFrame({"docno": ["a", "b"], "title": ["A", ""], "text": ["x y", "é 🎈"]})
    entry = store.get_frames(Key("dataset", 1), lambda: {"docs": docs})
    once = entry.frame("docs")
    pd.testing.assert_frame_equal(once, docs, check_dtype=False)
    once["text"] = "spoiled"
    pd.testing.assert_frame_equal(entry.frame("docs"), docs, check_dtype=False)


def test_frames_are_checked_before_they_are_stored(store: Store) -> None:
    bad = pd.DataFrame({"docno": ["a", "a"], "title": ["", ""], "text": ["x", "y"]})
    with pytest.raises(DataError, match=r"docs frame from dataset: row 1 repeats the key docno='a'"):
        store.get_frames(Key("dataset", 1), lambda: {"docs": bad})
    assert store.find(Key("dataset", 1)) is None


def test_a_frame_is_read_by_its_entry_s_name_and_counts_as_used(store: Store) -> None:
    docs = pd.DataFrame({"docno": ["a", "b"], "title": ["A", ""], "text": ["x y", "z"]})
    entry = store.get_frames(Key("dataset", 1), lambda: {"docs": docs})
    name = f"dataset/{entry.digest}"
    os.utime(entry.path / KEY_FILE, (1000, 1000))
    found = Store(store.root).frame_at(name, "docs")
    assert found is not None
    pd.testing.assert_frame_equal(found, docs, check_dtype=False)
    assert (entry.path / KEY_FILE).stat().st_mtime > 1000
    assert Store(store.root).frame_at(name, "topics") is None
    assert Store(store.root).frame_at(f"dataset/{'0' * 64}", "docs") is None
    (entry.path / "docs.parquet").write_bytes(b"other")
    assert Store(store.root).frame_at(name, "docs") is None


def _slow_maker(root: Path, log: Path) -> None:
    def make(folder: Path) -> None:
        with log.open("a") as lines:
            lines.write("made\n")
        time.sleep(0.3)
        (folder / "data.txt").write_text("one")

    assert (Store(root).get(KEY, make).path / "data.txt").read_text() == "one"


def test_of_several_processes_one_makes_and_the_others_read(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_slow_maker, args=(tmp_path / "s", tmp_path / "log")) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_maker_that_was_overtaken_on_another_machine_reads_the_winner(tmp_path: Path) -> None:
    """Where locks do not reach (two machines, one folder), the rename decides."""
    ours, theirs = Store(tmp_path), Store(tmp_path)

    def overtaken(folder: Path) -> None:
        (folder / "data.txt").write_text("one")
        theirs._make(KEY, write_text("one"))

    assert (ours.get(KEY, overtaken).path / "data.txt").read_text() == "one"
    assert list((tmp_path / ".drafts").iterdir()) == []


def test_a_maker_whose_folder_is_taken_by_what_is_no_entry_fails_and_leaves_that(store: Store) -> None:
    folder = store.folder(KEY)

    def make(draft: Path) -> None:
        (draft / "data.txt").write_text("one")
        folder.mkdir(parents=True)
        (folder / "half.txt").write_text("half")

    with pytest.raises(OSError, match="not empty"):
        store.get(KEY, make)
    assert [file.name for file in folder.iterdir()] == ["half.txt"]
    assert list((store.root / ".drafts").iterdir()) == []
    assert store.made == []


def test_a_look_at_damage_takes_nobody_s_entry_away(tmp_path: Path) -> None:
    """A reader that saw the damage may be slower than the maker who made it good."""
    path = Store(tmp_path).get(KEY, write_text("one")).path
    (path / "data.txt").write_text("two")
    assert Store(tmp_path).find(KEY) is None
    assert (path / "data.txt").read_text() == "two"
    assert Store(tmp_path).get(KEY, write_text("one")).made
    assert (path / "data.txt").read_text() == "one"
    assert list((tmp_path / ".drafts").iterdir()) == []


def _machine_without_locks(root: Path, number: int) -> None:
    """Makes or reads the same entries as everybody else, in an order of its own."""
    _entries.FileLock.acquire = lambda self: None
    _entries.FileLock.release = lambda self: None
    frame = pd.DataFrame({"qid": ["q1"], "value": [0.5]})
    for i in range(40):
        # Runs of four in another order each.
        key = Key("values", 1, {"i": i ^ number})
        entry = Store(root).get_frames(key, lambda: {"values": frame})
        pd.testing.assert_frame_equal(entry.frame("values"), frame, check_dtype=False)


def test_machines_whose_locks_do_not_reach_each_other_do_no_harm(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    machines = [context.Process(target=_machine_without_locks, args=(tmp_path, n)) for n in range(4)]
    for machine in machines:
        machine.start()
    for machine in machines:
        machine.join()
    assert [machine.exitcode for machine in machines] == [0] * 4
    assert len(list(tmp_path.glob("values/*/key.json"))) == 40
    assert list((tmp_path / ".drafts").iterdir()) == []


def test_a_file_system_without_locks_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    known = Key("values", 1)
    store.get(known, write_text("one"))
    monkeypatch.setattr(_entries.FileLock, "acquire", refused)
    assert not store.get(known, refuse).made  # what is there is read without a lock
    with pytest.raises(ConfigError, match=r"cannot be locked \(No locks available\)"):
        store.get(KEY, write_text("one"))


def test_colleagues_of_one_group_may_lock_what_the_other_made(store: Store) -> None:
    before = os.umask(0o002)
    try:
        path = store.get(KEY, write_text("one")).path
    finally:
        os.umask(before)
    written = [path, path / "data.txt", store.root / ".drafts", *(store.root / ".locks").iterdir()]
    assert {oct(p.stat().st_mode & 0o060) for p in written} == {"0o60"}


@pytest.mark.parametrize("links", [True, False])
def test_files_of_an_entry_without_its_key_are_linked_or_else_copied(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def make(folder: Path) -> None:
        (folder / "a.txt").write_text("one")
        (folder / "deep").mkdir()
        (folder / "deep" / "b.txt").write_text("two")
        (folder / "deep" / KEY_FILE).write_text("three")

    def refused(self: Path, other: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    entry = store.get(KEY, make).path
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refused)
    at = tmp_path / "new" / "arm"
    link_files(entry, at)
    found = {file.relative_to(at).as_posix(): file.read_text() for file in at.rglob("*") if file.is_file()}
    assert found == {"a.txt": "one", "deep/b.txt": "two", f"deep/{KEY_FILE}": "three"}
    assert [os.path.samefile(at / name, entry / name) for name in found] == [links] * 3
