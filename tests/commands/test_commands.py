"""What commands pass on and how they end, in this process: their work is put in by hand."""

from __future__ import annotations

import errno
import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import OmegaConf

import ragauge
from logged_runs import LoggedRuns, questions
from processes import ROOT
from ragauge import compare as comparing
from ragauge.commands import callbacks, compare, errors, library, main, results
from ragauge.commands.conf import _options, conf_folder, explain, of_swept, of_systems, quoted
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError, DataError, GateError
from ragauge.experiment.setup import config
from sweep_records import record_of

KEY = "sk-planted-0123456789abcdef"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("no\x1b such key"), 2, "error: no␛ such key\n"),
        (DataError("a row"), DataError.exit_code, "error: a row\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/here"), 2, "error: /here: permission denied\n"),
    ],
)
def test_an_expected_error_is_one_line_and_the_exit_code(
    error: Exception, code: int, line: str, capsys: Capture
) -> None:
    def command(arguments: Sequence[str] | None = None) -> int:
        raise error

    assert told(command)([]) == code
    assert capsys.readouterr() == ("", line)


def test_a_command_s_exit_code_is_its_own_and_a_full_disk_is_told(capsys: Capture) -> None:
    assert told(lambda arguments: len(arguments or ()))(["a", "b"]) == 2

    def full(arguments: Sequence[str] | None = None) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/here/file")

    assert told(full)([]) == 1
    assert capsys.readouterr().err.startswith("error: ")

    def other(arguments: Sequence[str] | None = None) -> int:
        raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        told(other)([])


def test_a_reader_that_closes_the_pipe_is_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    dropped: list[bool] = []
    monkeypatch.setattr(errors, "drop_output", lambda: dropped.append(True))

    def unread(arguments: Sequence[str] | None = None) -> int:
        raise BrokenPipeError

    assert told(unread)([]) == 0
    assert (dropped, capsys.readouterr().err) == ([True], "")


def test_a_sweep_from_python_counts_its_jobs_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(library.sys.stderr, "isatty", lambda: True, raising=False)
    with library._counted(3, True):
        bar = library._bar
        assert bar is not None
        assert (bar.total, bar.desc, bar.unit, bar.disable) == (3, "jobs", "job", False)
    assert library._bar is None
    with library._counted(3, False):
        assert library._bar is None


# --- compare ------------------------------------------------------------------------------------------------


SCORES = {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.2}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> LoggedRuns:
    return LoggedRuns(f"sqlite:///{tmp_path_factory.mktemp('compared') / 'mlflow.db'}", "compared")


@pytest.fixture(scope="module")
def runs(logged: LoggedRuns) -> list[str]:
    """Two systems at two budgets, in one of which they answer other topics."""
    grid = [("bm25", "100"), ("sim", "100"), ("bm25", "200"), ("sim", "200")]
    return [
        logged.job(questions({qid: score / (1 + i) for qid, score in SCORES.items()}), retriever=name, n_tokens=n)
        for i, (name, n) in enumerate(grid)
    ]


def test_compare_passes_on_what_is_given(
    logged: LoggedRuns, runs: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare.shutil, "get_terminal_size", lambda fallback=(80, 24): os.terminal_size(fallback))
    given = [*runs, "--baseline", "sim · N=200", "--n-tokens", "200", "--metrics", "ir_score", "--topics", "3",
             "--bootstrap", "10", "--seed", "7", "--across-datasets", "--slices", "--equivalent", "0.1",
             "--family", "all"]  # fmt: skip
    place = ["--tracking-uri", logged.uri]
    how = {"n_tokens": 200, "baseline": "sim · N=200", "n_boot": 10, "seed": 7, "across_datasets": True}
    found = comparing.compare(runs, logged.uri, **how, slices=True, equivalent=0.1, family="all")  # type: ignore[arg-type]
    assert (found.n_boot, found.seed, found.names[found.baseline]) == (10, 7, "sim · N=200")
    assert compare.main([*given, *place]) == 0
    printed = capsys.readouterr().out
    assert printed == comparing.text(found, ["ir_score"], 3, 200)  # there is no terminal
    assert "Equivalent to sim · N=200 within 0.1" in printed
    assert compare.main([*runs, "--all", *place]) == 0
    every = comparing.compare(runs, logged.uri)
    assert capsys.readouterr().out == comparing.text(every, comparing.choose_metrics(every, None, True), 10, 200)


def test_compare_writes_files_and_one_format_to_standard_output(
    logged: LoggedRuns, runs: list[str], tmp_path: Path, capsys: Capture
) -> None:
    files = {name: tmp_path / name for name in ("csv", "topics-csv", "latex")}
    options = [f"--{name}={file}" for name, file in files.items()]
    assert compare.main([*runs, *options, "--md", "-", "--topics=2", "--tracking-uri", logged.uri]) == 0
    found = comparing.compare(runs, logged.uri)
    metrics = comparing.choose_metrics(found)
    whole = [comparing.runs_csv(found, metrics), comparing.topics_csv(found), comparing.latex(found, metrics)]
    assert [file.read_text(encoding="utf-8") for file in files.values()] == whole
    out, err = capsys.readouterr()
    assert out == comparing.markdown(found, metrics, 2)
    assert err == "".join(f"wrote {file}\n" for file in files.values())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--csv=-", "--topics-csv=-"], "--csv and --topics-csv: one format goes to standard output"),
        (["--topics=-1"], "--topics -1: allowed are 0 (none) and more"),
        (["--bootstrap=-1"], "--bootstrap -1: allowed are 0 (no intervals) to 100,000 replicates"),
        (["--bootstrap=100001"], "--bootstrap 100001: allowed are"),
        (["--seed=-1"], "--seed -1: allowed are 0 and more"),
        (["--csv=/dev/null/f"], "/dev/null/f cannot be written: File exists"),
    ],
)
def test_compare_refuses_in_a_line(
    arguments: list[str], line: str, logged: LoggedRuns, runs: list[str], capsys: Capture
) -> None:
    place = ["--tracking-uri", logged.uri]
    assert compare.main([*runs[:2], *arguments, *place]) == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")
    assert compare.main([*runs[:2], "--topics=0", "--bootstrap=0", "--seed=0", *place]) == 0


# --- report, pool -------------------------------------------------------------------------------------------


def test_report_prints_what_it_wrote(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from ragauge.experiment.sweep import reports

    asked: list[Any] = []
    monkeypatch.setattr(reports, "write", lambda *given: asked.append(given) or ["a.html", "figures"])
    assert results.report(["folder"]) == 0
    assert capsys.readouterr().out == "a.html\nfigures\n"
    assert results.report(["run", "--tracking-uri", "u", "--figures", "png", "--figures", "pdf"]) == 0
    assert asked == [("folder", None, [], False), ("run", "u", ["png", "pdf"], False)]


def test_pool_ends_with_the_code_of_the_pooled_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ragauge.experiment.sweep import pooling

    monkeypatch.chdir(tmp_path)
    asked: list[Any] = []
    monkeypatch.setattr(pooling, "pool_again", lambda *given: asked.append(given) or 3)
    assert results.pool(["a/b", "--tracking-uri", "u"]) == 3
    assert asked == [(tmp_path / "a" / "b", "u", conf_folder(), False)]


@pytest.mark.parametrize("command", [results.report, results.pool, compare.main])
def test_the_help_of_a_command_begins_with_its_name(command: Any, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        command(["--help"])
    name = {results.report: "report", results.pool: "pool", compare.main: "compare"}[command]
    assert capsys.readouterr().out.startswith(f"usage: ragauge {name} ")


# --- the end of a sweep, reruns, options --------------------------------------------------------------------


def test_a_sweep_ends_with_the_code_of_its_pooling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ragauge.experiment.sweep import pooling

    ended: list[Any] = []
    monkeypatch.setattr(pooling, "finish", lambda config: 4)
    monkeypatch.setattr(callbacks.cli, "set_exit_code", lambda *given: ended.append(given))
    monkeypatch.chdir(tmp_path)
    callbacks.SweepCallback().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": "multirun/1"}}}))
    assert ended == [(4, tmp_path / "multirun" / "1")]


def test_run_refuses_the_run_of_a_sweep(logged: LoggedRuns) -> None:
    swept = logged.sweep("s")
    with pytest.raises(ConfigError, match=rf"rerun={swept} is a sweep: ragauge\.sweep"):
        ragauge.run([f"rerun={swept}", "n_tokens=5", f"tracking.uri={logged.uri}"])


def test_options_are_those_of_the_shipped_configuration_and_of_a_further_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "ours.yaml").write_text("a: 1\n")
    monkeypatch.setattr("sys.argv", ["ragauge", "--config-dir", str(tmp_path)])
    assert {"lexical", "none", "ours"} <= set(_options("judge"))
    assert "config" in _options(None)
    assert "lexical" not in _options(None)


def test_an_error_of_several_lines_is_one_with_its_cause() -> None:
    error = ValueError("first\nline")
    error.__cause__ = KeyError("why")
    assert explain(error) == "first line 'why'"


def test_measures_with_parameters_get_quotes_once() -> None:
    given = ["measures=[AP(rel=2)@10, nDCG@5]", "+measures=[P(rel=1),'R(x=2)']", "answers=[f(x)]"]
    assert quoted(given) == ['measures=["AP(rel=2)@10", nDCG@5]', "+measures=[\"P(rel=1)\",'R(x=2)']", "answers=[f(x)]"]


def test_a_sweep_over_a_recorded_file_takes_each_of_its_systems(tmp_path: Path) -> None:
    file = tmp_path / "two systems.jsonl"
    rows = [{"question": "Who?", "answer": "Ann", "system": name} for name in ("old", "v1.2, new", "old")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = ["-m", "experiment=recorded", f"recorded.path='{file}'"]
    *before, systems = of_systems(given)
    assert before == given
    [read] = OverridesParser.create().parse_overrides([systems])
    assert (read.get_key_element(), list(read.sweep_string_iterator())) == ("recorded.system", ["old", "'v1.2, new'"])
    assert of_systems(given[1:]) == given[1:]  # one job: it says that there are several
    assert of_systems([*given, "recorded.system=old"]) == [*given, "recorded.system=old"]
    file.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    assert of_systems(given) == given


def test_a_sweep_over_options_takes_a_key_that_the_default_option_does_not_have() -> None:
    given = ["-m", "retriever=mmr,sim", "retriever.index=a", "retriever.top_k=5,10", "llm.model=x", "order=[a,b]"]
    made = of_swept(given)
    assert made == [*given[:2], "retriever.index=choice(a)", *given[3:]]
    read = OverridesParser.create().parse_overrides(made[1:4])
    assert [list(o.sweep_string_iterator()) for o in read[1:]] == [["a"], ["5", "10"]]
    assert all(o.is_sweep_override() for o in read)
    assert of_swept(given[1:]) == given[1:]  # one job
    assert of_swept(["-m", "retriever=a,b", "retriever.model=[a"])[2] == "retriever.model=[a"


def test_a_key_that_one_of_the_swept_options_lacks_is_named_with_that_option(monkeypatch: pytest.MonkeyPatch) -> None:
    config.register()
    monkeypatch.setattr("sys.argv", ["program", "-m", "retriever=bm25,sim", "retriever.k1=1"])
    told = explain(ValueError("Could not override 'retriever.k1'"))
    assert told.startswith("unknown key 'retriever.k1'. It is a key of retriever=bm25, milvus. retriever=sim has: ef_c")


def test_hydra_s_command_line_is_what_a_plug_in_makes_of_it_and_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    seen: list[Any] = []

    @contextmanager
    def prepare(arguments: Sequence[str], conf: Path) -> Any:
        seen.append((list(arguments), conf))
        yield ["made", "of it"]

    monkeypatch.setattr("sys.argv", ["program", "as given"])
    with main._command_line(["rerun=x", "measures=[P(r=1)]"], lambda arguments: prepare):
        assert main.sys.argv == ["program", "made", "of it"]
    assert main.sys.argv == ["program", "as given"]
    assert seen[0][0] == ["rerun=x", 'measures=["P(r=1)"]']
    with main._command_line(["n_tokens=5"], lambda arguments: None):
        assert main.sys.argv == ["program", "n_tokens=5"]


# --- how a sweep begins and ends, and what Python is told -----------------------------------------------------


def test_output_that_nobody_reads_goes_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "said").open("w", encoding="utf-8") as said:
        monkeypatch.setattr("sys.stdout", said)
        errors.drop_output()
        print("lost", flush=True)
    assert (tmp_path / "said").read_text(encoding="utf-8") == ""


def test_the_jobs_of_a_sweep_are_composed_by_what_refuses_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loader = SimpleNamespace(load_sweep_config=lambda master, overrides: OmegaConf.create({"api_key": KEY}))
    hydra = SimpleNamespace(config_loader=loader)
    began: list[Any] = []
    monkeypatch.setattr(callbacks.GlobalHydra, "instance", lambda: SimpleNamespace(hydra=hydra))
    monkeypatch.setattr(main, "sweep_begins", began.append)
    cfg = OmegaConf.create({"tracking": {"uri": "sqlite:///x.db"}, "hydra": {
        "sweep": {"dir": str(tmp_path)}, "overrides": {"task": ["n_tokens=100,200"]}}})  # fmt: skip
    callbacks.KeysCallback().on_multirun_start(cfg)
    assert began == ["sqlite:///x.db"]
    with pytest.raises(ConfigError, match="api_key"):
        hydra.config_loader.load_sweep_config(None, [])


def test_a_job_of_a_sweep_takes_the_config_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[list[str]] = []

    def compose(master: Any, overrides: list[str]) -> Any:
        composed.append(overrides)
        return OmegaConf.create({"n_tokens": len(composed), "folder": "${drawn:}"})

    numbers = itertools.count()
    OmegaConf.register_new_resolver("drawn", lambda: next(numbers), use_cache=True)
    try:
        guard, master = callbacks.KeyGuard(SimpleNamespace(load_sweep_config=compose)), OmegaConf.create("a: ${drawn:}")
        checked = guard.load_sweep_config(master, ["x=1"])
        assert guard.load_sweep_config(master, ["x=2"]).n_tokens == 2
        checked.n_tokens = 7
        assert master.a == 0
        job = guard.load_sweep_config(master, ["x=1"])
        assert (job.n_tokens, job.folder, composed) == (1, 0, [["x=1"], ["x=2"]])
        monkeypatch.setattr(callbacks, "_MOST_KEPT", 0)
        assert [guard.load_sweep_config(master, ["x=3"]).n_tokens for _ in range(2)] == [3, 4]
    finally:
        OmegaConf.clear_resolver("drawn")


def test_a_job_at_another_budget_has_the_config_that_hydra_composes() -> None:
    config.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        loader: Any = GlobalHydra.instance().hydra.config_loader  # type: ignore[union-attr]
        master = loader.load_configuration("config", [], RunMode.MULTIRUN)
        first, other = [loader.load_sweep_config(master, ["retriever=sim", n]) for n in ("n_tokens=100", "n_tokens=0")]
    guard = callbacks.KeyGuard(SimpleNamespace(load_sweep_config=lambda *_: first))  # type: ignore[arg-type]
    assert guard.load_sweep_config(master, ["retriever=sim", "n_tokens=100"]) is first
    found = guard.load_sweep_config(master, ["retriever=sim", "n_tokens=0"])
    assert OmegaConf.to_yaml(found) == OmegaConf.to_yaml(other)
    assert OmegaConf.to_container(found.hydra.job, resolve=True) == OmegaConf.to_container(
        other.hydra.job, resolve=True
    )
    assert OmegaConf.is_struct(found)


@pytest.mark.parametrize(
    ("jobs", "separator", "copied"),
    [
        ([["a=1", "n_tokens=100"], ["a=1", "n_tokens=200"]], "=", True),
        ([["a=1", "n_tokens=100"], ["a=2", "n_tokens=200"]], "=", False),
        ([["a=1", "n_tokens=100"], ["a=1", "n_tokens=200"]], "-", False),
        ([["n_tokens=100", "n_tokens=300"], ["n_tokens=200", "n_tokens=300"]], "=", False),
        ([["++n_tokens=100"], ["++n_tokens=200"]], "=", False),
    ],
)
def test_a_config_is_a_copy_where_one_plain_budget_is_all_that_differs(
    jobs: list[list[str]], separator: str, copied: bool
) -> None:
    def compose(master: Any, overrides: list[str]) -> Any:
        composed.append(overrides)
        names = ",".join(one.replace("=", separator) for one in overrides)
        budget = int(overrides[-1].partition("=")[2])
        return OmegaConf.create(
            {"n_tokens": budget, "hydra": {"overrides": {"task": overrides}, "job": {"override_dirname": names}}}
        )

    composed: list[list[str]] = []
    guard = callbacks.KeyGuard(SimpleNamespace(load_sweep_config=compose))  # type: ignore[arg-type]
    found = [guard.load_sweep_config(OmegaConf.create(), job) for job in jobs]
    assert len(composed) == (1 if copied else 2)
    assert found == [compose(None, job) for job in jobs]


def test_an_interrupted_sweep_waits_for_its_workers_and_a_job_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    closed: list[str] = []
    child = SimpleNamespace(join=waited.append)
    monkeypatch.setattr(main.multiprocessing, "active_children", lambda: [child])
    monkeypatch.setattr("ragauge.track.close_orphans_quietly", closed.append)
    monkeypatch.setattr(main, "_sweep_tracking", [])
    main.close_runs_of_workers()
    assert (waited, closed) == ([], [])
    main.sweep_begins("sqlite:///x.db")
    main.close_runs_of_workers()
    assert (waited, closed) == ([10], ["sqlite:///x.db"])


def test_a_key_inside_of_a_value_that_is_unknown_is_named_with_those_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config.register()
    monkeypatch.setattr("sys.argv", ["program", "tracking={uir: x}"])
    error = ValueError("Error merging override tracking={uir: x}")
    error.__cause__ = ValueError("Key 'uir' not in 'Tracking'\n    full_key: tracking.uir")
    told = explain(error)
    assert told.startswith("unknown key 'tracking.uir'. Did you mean tracking.uri? Tracking has: ")
    assert {"note", "uri"} <= set(told.partition("has: ")[2].split(", "))


def test_a_gate_that_fails_names_the_run_where_there_is_one(tmp_path: Path) -> None:
    record = record_of(exit_code=3, error_type="GateError", error="em is 0.4")
    with pytest.raises(GateError, match=r"^em is 0\.4$"):
        library._raise_failure(record, tmp_path)
    with pytest.raises(GateError, match=r"^em is 0\.4; its results: ragauge\.load\('r1'\)$"):
        library._raise_failure(replace(record, run_id="r1"), tmp_path)
    library._raise_failure(record_of(), tmp_path)


def test_samples_of_several_systems_are_a_sweep_over_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(library, "sweep", lambda texts, *_: asked.append(texts))
    rows = [{"question": "?", "answer": "x", "system": name} for name in ("a", "b")]
    library.evaluate(rows, ["em"], "lexical", None, [], {"store": str(tmp_path)})
    assert asked[0][-1] == "recorded.system=a,b"
    assert {"experiment=recorded", "answers=[em]", "judge=lexical"} <= set(asked[0])
    with pytest.raises(ConfigError, match="metrics='em': allowed are lists of names"):
        library.evaluate(rows, "em", "lexical", None, [], {"store": str(tmp_path)})
