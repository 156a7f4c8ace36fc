"""A small store with known ages: every line that `ragauge store` and `ragauge ledger` print of it, by hand."""

from __future__ import annotations

import os
import sqlite3
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from ragauge.contract.usage import Usage
from ragauge.llms.finished import Call
from ragauge.llms.ledger import Ledger
from ragauge.plugins.upkeep import command, ledger
from ragauge.store import KEY_FILE, Key, Store

NOW = time.time()
DAY = 86_400.0
EMBEDDER = {"component": "m.E", "version": 1, "model": "mine"}
# name: stage, its parameters, in words, bytes, days since it was made and since it was used, jobs that need it
ENTRIES: dict[str, tuple[str, dict[str, Any], str, int, float, float, str]] = {
    "data": ("dataset", {"dataset": {"component": "m.Csv", "limit": 5}}, "Csv(limit=5)", 4000, 90, 40, "12"),
    "used": ("chunks", {"size": 128}, "size=128", 1000, 80, 2, ""),
    "ours": ("index", {"embedder": EMBEDDER}, "E(model=mine)", 70_000, 70, 35, "1"),
    "running": ("run", {"top_k": 3}, "top_k=3", 2000, 60, 33, ""),
    "old": ("run", {"top_k": 7}, "top_k=7", 3000, 50, 41, ""),
    "older": ("scores", {"n_grid": [1, 2, 3]}, "n_grid=[1, 2, 3]", 500, 95, 94, ""),
}


def when(days: float) -> str:
    return datetime.fromtimestamp(NOW - days * DAY).strftime("%Y-%m-%d %H:%M")


def aged(path: Path, days: float) -> None:
    os.utime(path, (NOW - days * DAY,) * 2)


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def kilo(n: int) -> str:
    return f"{n} B" if n < 1000 else f"{n / 1000:.1f} kB"


class World:
    """The store in a folder, and the MLflow database that knows of two jobs that ended and one that goes on."""

    def __init__(self, folder: Path) -> None:
        self.root, self.uri = folder / "store", f"sqlite:///{folder / 'mlflow.db'}"
        store, self.digest, self.size = Store(self.root), dict[str, str](), dict[str, int]()
        for name, (stage, params, _, size, made, used, _) in ENTRIES.items():
            inputs = {"data": self.digest["data"], "gone": "f" * 64} if name == "old" else {}
            key = Key(stage, 3, params, inputs)
            path = store.get(key, lambda folder, size=size: (folder / "data").write_bytes(b"x" * size)).path
            self.digest[name], self.size[name] = key.digest, bytes_in(path)
            aged(path / KEY_FILE, used)
            aged(path, made)
        for name, days in (("c" * 32, 50), ("d" * 32, 3)):
            (segment := self.root / "vectors" / name / "segment-1").mkdir(parents=True)
            (segment / "vectors.npy").write_bytes(b"x" * 1500)
            for path in (segment / "vectors.npy", segment, segment.parent):
                aged(path, days)
        for name, days in (("left", 2), ("busy", 0.5)):
            (draft := self.root / ".drafts" / name).mkdir(parents=True)
            (draft / "part").write_bytes(b"x" * 600)
            aged(draft / "part", days)
            aged(draft, 5)
        for letter, days in (("a", 40), ("b", 4)):
            (training := self.root / "checkpoints" / (letter * 64)).mkdir(parents=True)
            (training / "state").write_bytes(b"x" * 800)
            aged(training / "state", days)
            aged(training, 60)
        (self.root / "ledger.db").write_bytes(b"x" * 2000)
        (self.root / "onnx").mkdir()
        (self.root / "onnx" / "model").write_bytes(b"x" * 3000)
        client = MlflowClient(self.uri)
        experiment = client.create_experiment("e")
        self.ids = {}
        # The last begins 95 seconds after `running` was used: clocks of two machines may differ by as much.
        for job, days in (("1", 50), ("2", 45), ("3", 32.9989)):
            names = ", ".join(f'"{self.name(n)}"' for n, of in ENTRIES.items() if job in of[-1])
            tags = {"role": "job", "ragauge_version": "1", "ragauge.entries": f"[{names}]"}
            started = int((NOW - days * DAY) * 1000)
            run = client.create_run(experiment, started, tags | ({"sweep_id": "s"} if job == "2" else {}), f"job {job}")
            self.ids[job] = run.info.run_id
            if job != "3":
                client.set_terminated(run.info.run_id)

    def name(self, name: str) -> str:
        return f"{ENTRIES[name][0]}/{self.digest[name]}"

    def run(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
        """What a command prints, each row of a table with one space between its cells."""
        asks = ["--tracking-uri", self.uri] if arguments[0] in ("gc", "show") else []
        assert command.main([*arguments, "--store", str(self.root), *asks]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    def row(self, name: str, last: str = "") -> str:
        stage, _, what, _, made, used, _ = ENTRIES[name]
        return f"{stage} {self.digest[name][:12]} {kilo(self.size[name])} {when(made)} {when(used)} {last or what}"

    def sum(self, *names: str) -> str:
        return kilo(sum(self.size[name] for name in names))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def test_ls_has_a_row_for_each_entry_and_sums_by_stage(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    runs = sorted(("running", "old"), key=lambda name: world.digest[name])
    head = "stage digest size made last used what made it"
    caches = (
        *(("vectors", "c" * 32, 1500, 50), ("vectors", "d" * 32, 1500, 3)),
        *(("checkpoints", "a" * 64, 800, 40), ("checkpoints", "b" * 64, 800, 4)),
        *((".drafts", "busy", 600, 0.5), (".drafts", "left", 600, 2)),
    )
    beside = [f"{kind}/{name}: {kilo(size)}, last used {when(days)}" for kind, name, size, days in sorted(caches)]
    assert world.run(capsys, "ls") == [
        head, *map(world.row, ("used", "data", "ours", *runs, "older")), "",
        "stage entries size", f"chunks 1 {world.sum('used')}", f"dataset 1 {world.sum('data')}",
        f"index 1 {world.sum('ours')}", f"run 2 {world.sum('running', 'old')}", f"scores 1 {world.sum('older')}",
        f"total 6 {world.sum(*ENTRIES)}",
        *beside, "ledger.db: 2.0 kB, the LLM calls that were paid for; see ragauge ledger", "onnx: 3.0 kB",
    ]  # fmt: skip
    of_stage = [
        "",
        "stage entries size",
        f"run 2 {world.sum('running', 'old')}",
        f"total 2 {world.sum('running', 'old')}",
    ]
    assert world.run(capsys, "ls", "--stage", "run") == [head, *map(world.row, runs), *of_stage]
    for sort in ("size", "age"):  # the larger of the two is the older one, too
        assert world.run(capsys, "ls", "--stage", "run", "--sort", sort)[1:3] == [
            world.row("old"),
            world.row("running"),
        ]
    by_age = [row.split()[0] for row in world.run(capsys, "ls", "--sort", "age")[1:7]]
    assert by_age == ["scores", "run", "dataset", "index", "run", "chunks"]


def test_show_has_all_of_an_entry(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    content = f"data {kilo(4000)}"
    lines = world.run(capsys, "show", world.digest["data"][:10])
    took = lines[2].removeprefix(f"made {when(90)}, in ")
    assert float(took.removesuffix(" s")) < 5
    assert lines == [
        world.name("data"), f"size {world.sum('data')}", f"made {when(90)}, in {took}", f"last used {when(40)}",
        "version 3", "params", "dataset:", "component: m.Csv", "limit: 5", "made from", "files", content,
        lines[12], f"used by 2 run(s) in MLflow at {world.uri}",
        f"{world.ids['2']} {when(45)} job 2 (sweep s)", f"{world.ids['1']} {when(50)} job 1 (no sweep)",
    ]  # fmt: skip
    assert lines[12].startswith("key.json ")
    made_from = world.run(capsys, "show", world.name("old"))[8:10]
    assert made_from == [
        f"data: {world.digest['data'][:12]} dataset/{world.digest['data'][:12]}",
        f"gone: {'f' * 12} a file, part of a frame, or no longer in this store",
    ]


@pytest.mark.parametrize("dry", [True, False])  # the last removes what the others look at
def test_gc_says_what_goes_and_what_stays_and_why(world: World, capsys: pytest.CaptureFixture[str], dry: bool) -> None:
    gone = "would be removed" if dry else "removed"
    runs = sorted(("data", "ours"), key=lambda name: ENTRIES[name][0])
    freed = world.size["old"] + world.size["older"] + 600 + 800 + 1500
    assert world.run(capsys, "gc", "--keep-days", "30", *(["--dry-run"] if dry else [])) == [
        f"3 kept run(s) in MLflow at {world.uri}",
        f"kept, used within 30 days: 4, {kilo(world.size['used'] + 600 + 800 + 1500)}",
        "kept, used since a run began that is still going: "
        f"job 3 ({world.ids['3']}): 1, {world.sum('running')}",
        world.row("running"),
        f"kept, needed by runs: 2, {world.sum(*runs)}",
        world.row("data", f"job 2 ({world.ids['2']}) and 1 more"), world.row("ours", f"job 1 ({world.ids['1']})"),
        f"{gone}: 5, {kilo(freed)}", world.row("old"), world.row("older"),
        f".drafts left 600 B {when(5)} {when(2)}",
        f"checkpoints {'a' * 12} 800 B {when(60)} {when(40)}",
        f"vectors {'c' * 12} 1.5 kB {when(50)} {when(50)}",
    ]  # fmt: skip
    there = {name for name in ENTRIES if (world.root / world.name(name)).exists()}
    assert there == set(ENTRIES) - (set() if dry else {"old", "older"})
    assert sorted(p.name for p in (world.root / ".drafts").iterdir()) == (["busy", "left"] if dry else ["busy"])
    assert (world.root / "checkpoints" / ("a" * 64)).exists() == (world.root / "vectors" / ("c" * 32)).exists() == dry
    assert (world.root / "checkpoints" / ("b" * 64)).exists()


def test_calls_are_listed_with_sums_by_model_and_state_and_the_latest_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, at = Ledger(tmp_path / "ledger.db"), dict[str, float]()
    replies = [f"reply {n} " + "x" * 80 for n in range(23)]
    for n in range(23):
        model, text = ("b", None) if n == 5 else ("a", replies[n])
        request = f'{{"chat": {{"{"model_name" if n == 7 else "model"}": "{model}"}}}}'
        key = f"{n:064d}"
        made.add(
            Call(
                key,
                request,
                text,
                "timeout",
                Usage(1, 1, 0.5 + n / 100, 0.1, 1),
                "s",
                unread_at=1.0 if n == 3 else None,
            )
        )
        at[key] = NOW - (30 - n) * DAY
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.executemany("UPDATE calls SET added = ? WHERE key = ?", [(time_, key) for key, time_ in at.items()])
    place = ["--ledger", str(tmp_path / "ledger.db")]

    def lines(*arguments: str) -> list[str]:
        assert ledger.main([*arguments, *place]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    # 21 calls of a are kept: all but the fourth, and the sixth, which is of b; 0 to 22 cents beside half a dollar each.
    kept = 21 * 0.5 + (sum(range(23)) - 3 - 5) / 100

    def said(n: int) -> str:
        if n == 5:
            return f"{when(25)} b no answer timeout"
        return f"{when(30 - n)} a {'unreadable' if n == 3 else 'kept'} {replies[n][:60]}"

    assert lines("ls") == [
        "model state calls USD first last",
        f"a kept 21 {kept:.4f} {when(30)} {when(8)}",
        f"a unreadable 1 0.5300 {when(27)} {when(27)}",
        f"b no answer 1 0.5500 {when(25)} {when(25)}", "",
        "asked model state reply",
        *map(said, range(22, 2, -1)),
        "and 3 earlier calls",
    ]  # fmt: skip
    after, before = (datetime.fromtimestamp(at[f"{n:064d}"]).isoformat() for n in (4, 7))
    chosen = lines("ls", "--after", after[:19], "--before", before[:19])
    assert [line.split()[0] for line in chosen[1:3]] == ["a", "b"]
    assert chosen[1].split()[:3] == ["a", "kept", "2"]
