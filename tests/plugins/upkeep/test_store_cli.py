"""`ragauge store`: a real store that real jobs filled, and the MLflow database that knows them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock
from hydra import compose, initialize_config_dir

from ragauge.contract import frames
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config
from ragauge.plugins.upkeep import removal
from ragauge.plugins.upkeep.command import main
from ragauge.plugins.upkeep.listing import describe, list_caches, list_items, size_text
from ragauge.store import KEY_FILE, Key, Store, file_sha256
from ragauge.store.vectors import VectorCache, _text_keys, _write_segment, claims_of
from ragauge.track import LoggedRun, Reader

CONF = Path(__file__).resolve().parents[3] / "conf"
CHEAP = [
    "dataset=sample",
    "dataset.limit=5",
    "chunker=none",
    "tokenizer=words",
    "llm=none",
    "judge=none",
    "bootstrap=0",
]
DAY = 86_400
KEY = Key("chunks", 1, {"size": 128}, {"docs": "abc"})


@dataclass(frozen=True)
class Place:
    """A store, the MLflow database of its runs, and the runs of the two jobs that filled it."""

    store: Path
    uri: str
    bm25: LoggedRun
    none: LoggedRun

    def command(self, *arguments: str) -> int:
        asks = ["--tracking-uri", self.uri] if arguments[0] in ("gc", "show") else []
        return main([*arguments, "--store", str(self.store), *asks])

    def names(self) -> set[str]:
        """<stage>/<digest> of what is there."""
        return {item.name for item in list_items(self.store)}

    def age(self, days: float) -> None:
        for item in list_items(self.store):
            set_used(item.path, days)

    def delete(self, run: LoggedRun) -> None:
        client_of(self.uri).delete_run(run.run_id)


def set_used(path: Path, days_ago: float) -> None:
    then = time.time() - days_ago * DAY
    os.utime(path / KEY_FILE, (then, then))


def client_of(uri: str):
    from mlflow import MlflowClient

    return MlflowClient(uri)


def write_text(text: str):
    return lambda folder: (folder / "data.txt").write_text(text, encoding="utf-8")


def refuse(folder: Path) -> None:
    raise AssertionError("made a second time")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two jobs leave behind that share a dataset and chunks."""
    folder = tmp_path_factory.mktemp("filled")
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        for number, retriever in enumerate(("bm25", "none")):
            places = [f"store={folder / 'store'}", f"tracking.uri=sqlite:///{folder / 'mlflow.db'}"]
            cfg = compose("config", overrides=[*CHEAP, *places, f"retriever={retriever}"])
            job = JobFolder(folder / str(number), None, 0, {"retriever": retriever}, ())
            job.path.mkdir()
            assert execute(cfg, job) == 0
    return folder


@pytest.fixture
def place(filled: Path, tmp_path: Path) -> Place:
    """A copy of it for one test."""
    shutil.copytree(filled / "store", tmp_path / "store")
    shutil.copy(filled / "mlflow.db", tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    none, bm25 = Reader(uri).measured()
    return Place(tmp_path / "store", uri, bm25, none)


def shared_and_own(place: Place) -> tuple[set[str], set[str]]:
    """Names of the entries of the job without retrieval, and of those that only the other one used."""
    kept = set(place.none.entries or ())
    return kept, set(place.bm25.entries or ()) - kept


# --- what runs record ---------------------------------------------------------------------------------------


def test_a_job_records_every_entry_that_it_used(place: Place) -> None:
    assert (place.bm25.name, place.none.name) == ("bm25 · N=1000 · ?", "none · N=1000 · ?")
    kept, own = shared_and_own(place)
    assert kept | own == place.names()
    assert sorted(name.split("/")[0] for name in place.bm25.entries or ()) == [
        "answers", "chunks", "classics", "context", "dataset", "findings", "floor", "funnel", "funnel_corpus",
        "index", "located", "run", "scores", "verdicts",
    ]  # fmt: skip
    assert {name.split("/")[0] for name in own} == {
        "findings",
        "funnel",
        "index",
        "run",
        "context",
        "scores",
        "classics",
        "answers",
    }


def test_the_runs_of_one_entry_are_found_by_its_name(place: Place) -> None:
    _, own = shared_and_own(place)
    assert Reader(place.uri).measured(min(own)) == [place.bm25]
    dataset = next(name for name in place.names() if name.startswith("dataset/"))
    assert Reader(place.uri).measured(dataset) == [place.none, place.bm25]


def test_reading_an_entry_says_when_it_was_used_and_that_it_was(store: Store) -> None:
    path = store.get(KEY, write_text("one")).path
    set_used(path, 40)
    (listed,) = list_items(store.root)
    assert listed.used == pytest.approx(time.time() - 40 * DAY, abs=60)
    reader = Store(store.root)
    reader.get(KEY, refuse)
    (again,) = list_items(store.root)
    assert again.used == pytest.approx(time.time(), abs=60)
    assert again.made == listed.made
    assert store.used == reader.used == {f"chunks/{KEY.digest}"}


def test_a_store_that_may_only_be_read_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.get(KEY, write_text("one"))

    def forbid(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", forbid)
    assert (Store(store.root).get(KEY, refuse).path / "data.txt").read_text() == "one"


# --- ls and show --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "--stage", "rum"], "--stage rum: the store"),
        (["show", "xyz"], "no entry's digest begins with 'xyz'; the store"),
        (["show", "run/"], "no entry's digest begins with 'run/'"),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_is(place: Place, capsys, arguments, message) -> None:
    assert place.command(*arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "holds 22 entries of the stages answers, chunks, classics, context, dataset" in err


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, capsys) -> None:
    assert main(["ls", "--store", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is no folder; name the store by --store or RAGAUGE_STORE" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_show_tells_key_frames_origins_and_runs(place: Place, capsys) -> None:
    _, own = shared_and_own(place)
    name = next(name for name in own if name.startswith("context/"))
    run = next(name for name in own if name.startswith("run/"))
    (chunks,) = (name for name in place.names() if name.startswith("chunks/"))
    for target in (name, name.partition("/")[2][:9]):
        assert place.command("show", target) == 0
        out = capsys.readouterr().out
        assert out.startswith(name + "\n")
        assert "component: words" in out
        assert f"  {run[:16]}" in out  # the entries whose frames it was made from
        assert f"  {chunks[:19]}" in out
        assert "50 row(s): qid, n_tokens, layout, end, n_used, n_chunks" in out
        assert "used by 1 run(s)" in out
        assert place.bm25.run_id in out


def test_show_names_an_input_by_the_entry_itself_or_by_a_frame_of_one(store: Store, capsys) -> None:
    one = store.get_frames(KEY, lambda: {"chunks": frames.empty("chunks")})
    of_entry = Key("index", 1, {}, {"docs": KEY.digest})
    of_frame = Key("index", 1, {}, {"docs": one.frame_digest("chunks"), "other": "f" * 64})
    for key in (of_entry, of_frame):
        store.get(key, write_text("one"))
        assert main(["show", key.digest, "--store", str(store.root)]) == 0
        told = capsys.readouterr().out
        assert f"docs: {key.inputs['docs'][:12]}  chunks/{KEY.digest[:12]}\n" in told
    assert f"other: {'f' * 12}  a file, part of a frame, or no longer in this store" in told


def test_show_names_the_entries_that_an_ambiguous_prefix_fits(store: Store, capsys) -> None:
    prefix = ""
    for number in range(17):  # of 17 digests two begin with the same of 16 characters
        store.get(Key("chunks", number), write_text("one"))
    digests = sorted(item.digest for item in list_items(store.root))
    for one, two in itertools.pairwise(digests):
        if one[0] == two[0]:
            prefix = one[0]
    assert main(["show", prefix, "--store", str(store.root)]) == 2
    err = capsys.readouterr().err
    assert f"entries' digests begin with '{prefix}': chunks/{prefix}" in err


def test_show_works_without_mlflow(place: Place, tmp_path: Path, capsys) -> None:
    (name, *_) = place.names()
    missing = f"sqlite:///{tmp_path / 'other.db'}"
    assert main(["show", name, "--store", str(place.store), "--tracking-uri", missing]) == 0
    assert "used by runs: not known (no MLflow database at" in capsys.readouterr().out


# --- gc -----------------------------------------------------------------------------------------------------


def test_gc_removes_what_only_deleted_runs_needed_and_never_the_ledger(place: Place) -> None:
    kept, _ = shared_and_own(place)
    (place.store / "ledger.db").write_text("paid")
    place.age(31)
    place.delete(place.bm25)
    assert place.command("gc", "--keep-days", "30") == 0
    assert place.names() == kept
    place.delete(place.none)
    assert place.command("gc", "--keep-days", "30") == 0
    assert place.names() == set()
    assert (place.store / "ledger.db").read_text() == "paid"


def test_gc_keeps_what_runs_of_any_of_several_servers_need(place: Place, tmp_path: Path) -> None:
    kept, own = shared_and_own(place)
    place.age(31)
    shutil.copy(tmp_path / "mlflow.db", tmp_path / "other.db")
    place.delete(place.none)
    client_of(f"sqlite:///{tmp_path / 'other.db'}").delete_run(place.bm25.run_id)
    both = ["--tracking-uri", f"sqlite:///{tmp_path / 'other.db'}"]
    assert place.command("gc", "--keep-days", "30", *both) == 0
    assert place.names() == kept | own


@pytest.mark.parametrize("content", [None, "no database"])
def test_where_mlflow_cannot_be_asked_nothing_is_removed(place: Place, tmp_path: Path, capsys, content) -> None:
    place.age(31)
    before = place.names()
    other = tmp_path / "other.db"
    if content is not None:
        other.write_text(content)
    assert place.command("gc", "--keep-days", "0", "--tracking-uri", f"sqlite:///{other}") == 2
    assert "MLflow" in capsys.readouterr().err
    assert place.names() == before
    assert other.exists() == (content is not None)


def test_where_mlflow_s_server_does_not_answer_nothing_is_removed(
    place: Place, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    place.age(31)
    before = place.names()
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        uri = f"http://somebody:secret@127.0.0.1:{unheard.getsockname()[1]}"
        assert place.command("gc", "--keep-days", "0", "--tracking-uri", uri) == 2
    err = capsys.readouterr().err
    assert "error: MLflow at http://***@127.0.0.1:" in err
    assert "secret" not in err
    assert place.names() == before


def test_nothing_is_removed_while_a_finished_job_does_not_say_what_it_used(place: Place, capsys) -> None:
    place.age(31)
    before = place.names()
    client_of(place.uri).delete_tag(place.none.run_id, "ragauge.entries")
    assert place.command("gc", "--keep-days", "30") == 2
    err = capsys.readouterr().err
    assert f"1 finished job(s) in MLflow do not say which entries they used, such as {place.none.name}" in err
    assert place.names() == before


def test_a_tag_that_cannot_be_read_removes_nothing(place: Place, capsys) -> None:
    place.age(31)
    before = place.names()
    client_of(place.uri).set_tag(place.none.run_id, "ragauge.entries", '["dataset/abc", "chu')
    assert place.command("gc", "--keep-days", "30") == 2
    assert f"run {place.none.run_id}: its tag ragauge.entries is no JSON list" in capsys.readouterr().err
    assert place.names() == before


def test_checkpoints_are_no_entries_and_go_when_no_training_goes_on_from_them(place: Place, capsys) -> None:
    names = place.names()
    folders = [place.store / "checkpoints" / (letter * 64) for letter in "abc"]
    for folder, days in zip(folders, (40, 40, 1), strict=True):
        folder.mkdir(parents=True)
        (folder / "state.safetensors").write_bytes(b"x" * 1000)
        for path in (folder / "state.safetensors", folder):
            os.utime(path, (time.time() - days * DAY,) * 2)
    assert place.names() == names
    assert place.command("verify") == 0
    assert place.command("ls") == 0
    assert f"checkpoints/{folders[0].name}: 1.0 kB, last used " in capsys.readouterr().out
    (place.store / ".locks").mkdir(exist_ok=True)
    with FileLock(place.store / ".locks" / f"{folders[1].name}.lock"):  # a training that goes on
        assert place.command("gc", "--keep-days", "30", "--dry-run") == 0
        assert all(folder.is_dir() for folder in folders)
        assert place.command("gc", "--keep-days", "30") == 0
    out = capsys.readouterr().out
    assert "\nremoved: 1, 1.0 kB\n  checkpoints  aaaaaaaaaaaa" in out
    assert "\nkept, used or made again just now: 1, 1.0 kB\n  checkpoints  bbbbbbbbbbbb" in out
    assert [folder.is_dir() for folder in folders] == [False, True, True]


@pytest.mark.parametrize("days", ["-1", "many", "nan"])
def test_days_that_are_none_are_refused(place: Place, capsys, days: str) -> None:
    with pytest.raises(SystemExit) as caught:
        place.command("gc", "--keep-days", days)
    assert caught.value.code == 2
    assert f"{days!r}: allowed are numbers of days from 0" in capsys.readouterr().err


def write_vectors(folder: Path, texts: Iterable[str]) -> None:
    keys = _text_keys(texts)
    _write_segment(folder, keys, np.ones((len(keys), 3), dtype=np.float32))


# --- removal beside readers and makers ----------------------------------------------------------------------


def test_an_entry_that_was_used_since_it_was_listed_stays(store: Store) -> None:
    store.get(KEY, write_text("one"))
    (item,) = list_items(store.root)
    Store(store.root).get(KEY, refuse)
    assert not removal.remove(store.root, item)
    (item,) = list_items(store.root)
    assert removal.remove(store.root, item)
    assert store.find(KEY) is None


def test_an_entry_that_is_used_in_the_very_moment_of_its_removal_is_put_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get(KEY, write_text("one"))
    (item,) = list_items(store.root)
    rename, entries = os.rename, []

    def after_a_reader(*paths: Path) -> None:
        if not entries:
            entries.append(Store(store.root).get(KEY, refuse))
        rename(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", after_a_reader)
        assert not removal.remove(store.root, item)
    assert (entries[0].path / "data.txt").read_text() == "one"
    assert list((store.root / ".drafts").iterdir()) == []


def test_an_entry_that_goes_while_it_is_read_is_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader came too late to be seen: it finds no entry, and no damaged one."""
    store.get(KEY, write_text("one"))
    (item,) = list_items(store.root)
    utime = os.utime

    def too_late(path: Path) -> None:
        monkeypatch.setattr(os, "utime", utime)
        assert removal.remove(store.root, item)
        utime(path)

    monkeypatch.setattr(os, "utime", too_late)
    again = Store(store.root).get(KEY, write_text("two"))
    assert again.made
    assert "damaged" not in caplog.text


def test_an_entry_that_somebody_is_making_is_left_alone(store: Store) -> None:
    store.get(KEY, write_text("one"))
    (item,) = list_items(store.root)
    with FileLock(store.root / ".locks" / f"{KEY.digest}.lock"):
        assert not removal.remove(store.root, item)
    assert item.path.exists()


def test_vectors_that_somebody_is_writing_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "vectors" / ("ab" * 16)
    write_vectors(folder, ["x"])
    (listed,) = list_caches(tmp_path)
    (tmp_path / ".locks").mkdir()
    with FileLock(tmp_path / ".locks" / f"vectors-{folder.name}.lock"):
        assert not removal.remove(tmp_path, listed)
    with claims_of(tmp_path, folder).take(_text_keys(["y"])):
        assert not removal.remove(tmp_path, listed)
    write_vectors(folder, ["y"])
    assert not removal.remove(tmp_path, listed)
    assert len(list(folder.glob("segment-*"))) == 2


# --- verify -------------------------------------------------------------------------------------------------


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_verify_finds_a_flipped_byte_and_removes_the_entry_if_told_to(place: Place, capsys) -> None:
    assert place.command("verify") == 0
    assert "22 entries and 0 segments of vectors read, 0 damaged" in capsys.readouterr().out
    damaged = next(item for item in list_items(place.store) if item.stage == "chunks")
    flip(damaged.path / "chunks.parquet")
    assert place.command("verify") == 2
    out = capsys.readouterr().out
    assert f"damaged: chunks/{damaged.digest[:12]}: chunks.parquet is not the file that was written" in out
    assert damaged.path.exists()
    assert place.command("verify", "--delete") == 2
    assert "1 removed" in capsys.readouterr().out
    assert not damaged.path.exists()
    assert place.command("verify") == 0


def edit_key(path: Path, **values: Any) -> None:
    manifest = json.loads((path / KEY_FILE).read_text(encoding="utf-8"))
    (path / KEY_FILE).write_text(json.dumps({**manifest, **values}), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / "run.parquet").unlink(), "run.parquet is missing"),
        (lambda path: (path / KEY_FILE).write_text("{"), "key.json: it is not JSON"),
        (lambda path: (path / KEY_FILE).unlink(), "key.json: No such file or directory"),
        (lambda path: edit_key(path, version=2), "key.json is that of run/"),
        (lambda path: edit_key(path, inputs=None), "key.json: inputs must be an object"),
        (lambda path: edit_key(path, frames={"run": "0" * 64}), "holds other rows than key.json records"),
    ],
)
def test_every_kind_of_damage_is_named(place: Place, capsys, damage, reason: str) -> None:
    item = next(item for item in list_items(place.store) if item.stage == "run")
    damage(item.path)
    assert place.command("verify") == 2
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("damaged")]
    assert line.startswith(f"damaged: run/{item.digest[:12]}: ")
    assert reason in line


def test_frames_are_checked_against_their_schema(store: Store, capsys) -> None:
    twice = pd.DataFrame({"qid": "q1", "docno": ["a", "a"], "score": 1.0, "rank": [0, 1]})

    def write(folder: Path) -> None:
        twice.to_parquet(folder / "run.parquet", index=False)

    entry = store.get(Key("run", 1), write)
    assert entry.frame_digest("run") == frames.content_digest(twice)
    assert main(["verify", "--store", str(store.root)]) == 2
    assert "run.parquet: run frame: row 1 repeats the key qid='q1', docno='a'" in capsys.readouterr().out


def test_a_file_with_the_right_checksum_that_is_no_parquet_is_damaged(store: Store, capsys) -> None:
    rows = pd.DataFrame({"value": [1.0]})
    path = store.get_frames(Key("values", 1), lambda: {"values": rows}).path
    (path / "values.parquet").write_text("no parquet")
    edit_key(path, files={"values.parquet": file_sha256(path / "values.parquet")})
    assert main(["verify", "--store", str(store.root)]) == 2
    assert "values.parquet cannot be read as Parquet" in capsys.readouterr().out


def test_damaged_vectors_are_found(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "vectors" / ("ab" * 16)
    write_vectors(folder, ["x"])
    write_vectors(folder, ["y"])
    whole, damaged = sorted(folder.glob("segment-*"))
    flip(damaged / "vectors.npy")
    assert main(["verify", "--delete", "--store", str(tmp_path)]) == 2
    assert f"{damaged.name}: vectors.npy has another checksum" in capsys.readouterr().out
    assert list(folder.glob("segment-*")) == [whole]
    assert main(["verify", "--store", str(tmp_path)]) == 0


# --- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"),
     (999_499, "999 kB"), (999_500, "1.0 MB"), (2_500_000_000, "2.5 GB"), (1_234_000_000_000, "1.2 TB")],
)  # fmt: skip
def test_sizes_are_told_in_decimal_units(size: int, text: str) -> None:
    assert size_text(size) == text


def test_what_made_an_entry_is_told_by_class_and_parameters() -> None:
    embedder = {"component": "m.Embedder", "version": 1, "model": "mini", "digest": "ab" * 32, "device": None}
    llm = {"component": "m.Chat", "version": 1, "prompt": "Answer\nthe  question " * 9, "chat": {"component": "m.Api"}}
    assert describe({"params": {"embedder": embedder, "n_tokens": 5, "llm": llm}}) == (
        "n_tokens=5, Chat(prompt=Answer the question Answer the …, Api), Embedder(model=mini)"
    )
    assert describe({}) == ""


def test_vectors_go_when_nobody_used_them_for_so_many_days(place: Place) -> None:
    folders = [place.store / "vectors" / (letter * 32) for letter in "ab"]
    caches = [VectorCache(place.store, folder.name, "embedding") for folder in folders]
    for cache in caches:
        cache.get(["x"], lambda texts: np.ones((1, 3), dtype=np.float32))
        for path in (cache.folder, *cache.folder.rglob("*")):
            os.utime(path, (time.time() - 40 * DAY,) * 2)
    caches[1].get(["x"], refuse)  # reads them
    assert place.command("gc", "--keep-days", "30") == 0
    assert [folder.is_dir() for folder in folders] == [False, True]


def test_the_command_starts_without_a_warning(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ragauge", "store", "ls"],
        env={**os.environ, "RAGAUGE_STORE": str(place.store)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "sample(limit=5" in done.stdout
