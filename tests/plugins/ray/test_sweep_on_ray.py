"""`hydra/launcher=ray` on scripted machines: what they get, and what a sweep says and does as they end or die."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from patched import instead_of
from plugins.ray.scripted_ray import RayError, RayTaskError, node
from processes import ROOT
from ragauge import __version__
from ragauge.commands.callbacks import KeyGuard
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.interruption import refuse_lost
from ragauge.experiment.setup import config
from ragauge.plugins.ray import sweep
from ragauge.plugins.ray.job import Ended, Sent
from sweep_records import job_json

SETTINGS = {"address": "head:6379", "n_jobs": None, "num_cpus": 2.0, "num_gpus": 1.0, "max_retries": 1,
            "environment": ["SEEN_*"], "runtime_env": {}}  # fmt: skip


@dataclass(eq=False)
class Machines(ModuleType):
    """Stands for `ray`. `steps` say one after the other what happens while the sweep waits.

    A step is how many seconds pass, the machines on which jobs begin, by job, and the job that ends and how: by the
    error of Ray, or by what it returns and its record.
    """

    folder: Path
    steps: list[tuple[float, dict[int, str], int | None, Any]]
    now: float = 100.0
    sent: list[Sent] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    cancelled: list[tuple[int, bool]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("ray")
        self.cloudpickle = SimpleNamespace(dumps=lambda value: value)
        self._private = SimpleNamespace(worker=SimpleNamespace())

    def init(self, **_: Any) -> None: ...

    def shutdown(self) -> None: ...

    def nodes(self) -> list[dict[str, Any]]:
        return [node("one", CPU=8.0), node("two", CPU=1.0, GPU=4.0), node("dead", alive=False, CPU=8.0, GPU=8.0)]

    def remote(self, **options: Any) -> Any:
        self.options = options
        return lambda function: SimpleNamespace(remote=self._task)

    def _task(self, sent: Sent) -> int:
        self.sent.append(sent)
        return len(self.sent) - 1

    def wait(self, tasks: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        self.waits.append(timeout)
        if self.cancelled:
            return tasks[:1], tasks[1:]
        seconds, began, ends, self.found = self.steps.pop(0)
        if isinstance(self.found, KeyboardInterrupt):
            raise self.found
        self.now += seconds
        latest = {sent.number: sent for sent in self.sent}
        for number, machine in began.items():
            (Path(latest[number].marks) / f"{number}.{latest[number].attempt}").write_text(machine)
        ready = [task for task in tasks if self.sent[task].number == ends]
        return ready, [task for task in tasks if task not in ready]

    def get(self, task: int) -> Ended:
        ended, record = self.found if isinstance(self.found, tuple) else (self.found, None)
        if record:
            write(self.folder / str(self.sent[task].number), record)
        if isinstance(ended, Exception):
            raise ended
        return ended

    def cancel(self, task: int, force: bool) -> None:
        self.cancelled.append((self.sent[task].number, force))


def write(folder: Path, record: dict[str, Any]) -> None:
    job_json(folder, {"metrics": {"x": 1.0}, "dataset_digest": "d", **record})


Launch = Callable[..., Machines]


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyGuard, DictConfig]:
    """What composes the jobs of a sweep, each once for all tests, and the config of the sweep."""
    config.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        loader: Any = GlobalHydra.instance().hydra.config_loader  # type: ignore[union-attr]
        own = [f"hydra.sweep.dir={tmp_path_factory.mktemp('swept')}",
               "hydra.job_logging.root=null", "hydra.hydra_logging.root=null"]  # fmt: skip
        master = loader.load_configuration("config", own, RunMode.MULTIRUN)
        guard = KeyGuard(loader)
        guard.load_sweep_config(master, ["retriever=none", "n_tokens=1"])
    return guard, master


@pytest.fixture
def folder(composed: tuple[KeyGuard, DictConfig]) -> Path:
    """The sweep's, empty."""
    path = Path(composed[1].hydra.sweep.dir)
    shutil.rmtree(path)
    path.mkdir()
    return path


@pytest.fixture
def launched(composed: tuple[KeyGuard, DictConfig], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Runs a sweep of three budgets, jobs 4 to 6, on machines with these steps."""

    def runs(config: DictConfig) -> None:
        with pytest.raises(RagaugeError) as lost:
            refuse_lost()
        write(Path(HydraConfig.get().runtime.output_dir), {"status": "FAILED", "error": str(lost.value)})

    of_last: list[Machines] = []

    def launch(*steps: Any, **settings: Any) -> Machines:
        guard, master = composed
        ray = Machines(folder, list(steps))
        of_last[:] = [ray]
        exceptions: Any = ModuleType("ray.exceptions")
        exceptions.RayError, exceptions.RayTaskError, exceptions.RuntimeEnvSetupError = RayError, RayTaskError, OSError
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)
        monkeypatch.setattr(sweep, "time", instead_of(time, monotonic=lambda: ray.now))
        HydraConfig.instance().set_config(master)
        context: Any = SimpleNamespace(config_loader=guard, callbacks=Callbacks())
        overrides = [["retriever=none", f"n_tokens={n}"] for n in (100, 200, 300)]
        returned = sweep.launch((context, runs, master), {**SETTINGS, **settings}, overrides, 4)
        assert [list(one.overrides or ()) for one in returned] == overrides
        return ray

    launch.of = of_last  # type: ignore[attr-defined]
    monkeypatch.chdir(folder)
    yield launch
    HydraConfig.instance().cfg = None


class Bar:
    """The bar of a sweep, which keeps what is said to run, one after the other."""

    def __init__(self, *_: Any) -> None:
        self.said: list[str] = []
        self.n = 0

    __enter__ = lambda self: self  # noqa: E731
    __exit__ = lambda self, *_: None  # noqa: E731

    def write(self, line: str, file: Any) -> None:
        print(line, file=file)

    def update(self) -> None:
        self.n += 1

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        if [text] != self.said[-1:]:
            self.said.append(text)


DONE, FAILED = {"status": "FINISHED", "exit_code": 0}, {"status": "FAILED", "exit_code": 2}
LOST = RayError("its node is gone")


def test_a_sweep_says_what_runs_where_and_runs_again_what_was_lost(
    launched: Launch, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweep, "progress", lambda *_: bar)
    monkeypatch.setenv("SEEN_HERE", "1")
    monkeypatch.setenv("UNSEEN", "1")
    bar = Bar()
    write(folder / "6", DONE)  # of an earlier sweep, so that it says nothing
    ray = launched(
        (0, {4: "alpha", 5: "beta"}, None, None),
        (7, {}, 4, (Ended("four\n", "warned\n"), DONE)),
        (0, {}, 5, LOST),
        (0, {}, 6, LOST),
        (1, {5: "gamma"}, None, None),
        (3, {}, 5, (Ended(), FAILED)),
        (0, {}, 6, (Ended(), {**DONE, "again": 1})),
    )
    out, err = capsys.readouterr()
    assert out == "four\n"
    assert err.splitlines() == [
        "#4 n_tokens=100: runs on alpha",
        "#5 n_tokens=200: runs on beta",
        "warned",
        "#4 n_tokens=100: done in 7 s on alpha (1 of 3)",
        "#5 n_tokens=200: lost by RayError: its machine or process is gone (on beta); run again, 1 of 1",
        "#6 n_tokens=300: lost by RayError: its machine or process is gone (before it began); run again, 1 of 1",
        "#5 n_tokens=200: runs on gamma",
        "#5 n_tokens=200: failed in 3 s on gamma (2 of 3, 1 failed)",
        "#6 n_tokens=300: done (3 of 3, 1 failed)",
    ]
    assert (bar.n, bar.said) == (3, ["running #4 #5", "running #5", "", "running #5", ""])
    assert [(one.number, one.attempt) for one in ray.sent] == [(4, 0), (5, 0), (6, 0), (5, 1), (6, 1)]
    first = ray.sent[0]
    assert (first.cwd, first.sweep, first.version) == (os.getcwd(), str(folder), __version__)
    assert first.environment == {"SEEN_HERE": "1"}
    job: Any = first.pickled[2]
    assert (job.hydra.job.id, job.hydra.job.num, job.n_tokens) == (f"{job.hydra.job.name}_4", 4, 100)
    assert ray.options == {"num_cpus": 2.0, "num_gpus": 1.0, "max_retries": 0, "scheduling_strategy": "SPREAD"}
    assert not Path(first.marks).exists()


def test_a_job_that_is_lost_too_often_ends_here_unless_it_had_come_to_its_end(
    launched: Launch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "4", {"status": "FAILED", "exit_code": 143})  # interrupted, as far as is known
    launched((0, {}, 4, LOST), (0, {}, 5, (LOST, DONE)), (0, {}, 6, LOST), max_retries=0)
    records = [json.loads((folder / str(number) / "job.json").read_text()) for number in (4, 5, 6)]
    why = "lost 1 time(s), the last by RayError: its machine or process is gone (before it began)"
    assert [record.get("error") for record in records] == [why, None, why]
    assert capsys.readouterr().err.splitlines() == [
        "#4 n_tokens=100: failed (1 of 3, 1 failed)",
        "#5 n_tokens=200: done (2 of 3, 1 failed)",
        "#6 n_tokens=300: failed (3 of 3, 2 failed)",
    ]


def test_a_sweep_that_no_machine_can_take_says_so_once(launched: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = [(20, {}, None, None)] * 3
    ends = [(0, {}, number, (Ended(), DONE)) for number in (4, 5, 6)]
    told = "no job has begun: none of the 2 machine(s) has num_cpus=2 and num_gpus=1; the sweep waits for one"
    launched(*waiting, *ends)
    assert capsys.readouterr().err.splitlines()[:1] == [told]
    launched(*waiting, *ends, num_gpus=0.0)  # one has room for it
    assert told[:20] not in capsys.readouterr().err
    launched((0, {5: "alpha"}, None, None), *waiting, *ends)
    assert told[:20] not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((Ended(refused="machine alpha has no folder"), None), "job #5 n_tokens=200: machine alpha has no folder"),
        (RayTaskError("pages", ImportError("no ours\nmore")), "cannot be run by Ray: ImportError: no ours; every"),
        (RayTaskError("", None), "cannot be run by Ray: RayTaskError: ; every machine"),
        (KeyboardInterrupt(), ""),
    ],
)  # fmt: skip
def test_what_no_machine_can_run_ends_the_others(
    launched: Launch, found: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(found) if isinstance(found, KeyboardInterrupt) else ConfigError) as raised:
        launched((0, {4: "alpha"}, None, None), (0, {}, 5, found))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    [ray] = launched.of  # type: ignore[attr-defined]
    # The last that was sent ends first. One has ended after the time that they have, the others are killed.
    others = [6, 5, 4] if isinstance(found, KeyboardInterrupt) else [6, 4]
    assert ray.cancelled == [*((n, False) for n in others), *((n, True) for n in reversed(others[:-1]))]
    assert ray.waits == [1.0, 1.0, 20.0, 20.0]
    assert capsys.readouterr().err.splitlines()[-1] == (f"ending 1 running job(s); {len(others) - 1} are not begun")
