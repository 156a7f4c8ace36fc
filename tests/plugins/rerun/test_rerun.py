"""A run again: the configuration that was logged is what runs, and scores are equal."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from chat_server import ChatServer
from counted_progress import CountedProgress
from processes import ROOT, Command, clean_environment, run_fresh
from ragauge import track
from ragauge.contract import provenance
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Jobs
from ragauge.contract.provenance import PACKAGES_FILE, packages_text
from ragauge.experiment.setup import config
from ragauge.plugins.rerun import argument, comparison
from ragauge.plugins.rerun.conf_folder import Origin
from ragauge.plugins.rerun.differences import environment_differences, tell
from sweep_records import record_of

CHEAP = ["chunker=none", "tokenizer=words", "llm=none", "judge=none"]
KEY = "sk-planted-0123456789abcdef"

Log = Callable[..., str]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('logged') / 'mlflow.db'}"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Today's conf/, to be changed by a test."""
    config.register()
    return Path(shutil.copytree(ROOT / "conf", tmp_path / "conf"))


@cache
def shipped(overrides: tuple[str, ...]) -> Any:
    """The shipped configuration with these overrides, composed once."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=list(overrides))


@pytest.fixture
def log(uri: str, request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """Logs a run as a job does, in an experiment of the test's own; its id."""
    config.register()

    def logged(*overrides: str, tags: dict[str, Any] | None = None, **changes: Any) -> str:
        given = [*CHEAP, f"tracking.uri={uri}", f"store={tmp_path / 'theirs'}", *overrides]
        cfg = shipped((*CHEAP, f"tracking.uri={uri}", *overrides)).copy()
        cfg.store = str(tmp_path / "theirs")
        config.settle(cfg)
        content = {**OmegaConf.to_container(cfg), **changes}  # type: ignore[dict-item]
        (files := tmp_path / "config").mkdir(parents=True, exist_ok=True)
        OmegaConf.save(OmegaConf.create(content), files / "config.yaml")
        OmegaConf.save(OmegaConf.create(given), files / "overrides.yaml")
        (files / PACKAGES_FILE).write_text(packages_text(), encoding="utf-8")
        chosen = dict(o.split("=", 1) for o in given)
        params = track.flatten(OmegaConf.to_container(cfg, resolve=True))  # type: ignore[arg-type]
        own = {"role": "job", **{group: chosen.get(group, "default") for group in GROUPS}, **(tags or {})}
        with track.Tracker(uri, request.node.name).run("a run", params, own) as run:
            shutil.copytree(files, run.folder / "config")
        return run.run_id

    return logged


@contextmanager
def composed(arguments: list[str], conf: Path) -> Iterator[tuple[Any, list[str]]]:
    """What Hydra makes of the arguments of a rerun, and the arguments."""
    with argument.prepared(arguments, conf) as made:
        assert made[0] == "--config-path"
        with initialize_config_dir(made[1], version_base="1.3"):
            yield compose("config", overrides=[a for a in made[2:] if not a.startswith("-")]), made


def again(run_id: str, uri: str, conf: Path, *further: str) -> dict[str, Any]:
    with composed([f"rerun={run_id}", f"tracking.uri={uri}", *further], conf) as (cfg, _):
        return OmegaConf.to_container(cfg)  # type: ignore[return-value]


# --- the configuration that runs --------------------------------------------------------------------------


def test_the_logged_values_run_whatever_conf_says_today(log: Log, uri: str, conf: Path) -> None:
    run_id = log("retriever=bm25", "retriever.top_k=7", "n_tokens=300", "+gate.ir_score=0.1")
    bm25 = conf / "retriever" / "bm25.yaml"
    bm25.write_text(bm25.read_text().replace("k1: 0.9", "k1: 1.5") + "new_key: 1\n")
    root = conf / "config.yaml"
    root.write_text(root.read_text().replace("bootstrap: 1000", "bootstrap: 10"))
    cfg = again(run_id, uri, conf)
    assert cfg["retriever"] == {
        "_target_": "ragauge.retrieval.retrievers.BM25", "top_k": 7, "formula": "lucene", "k1": 0.9,
        "b": 0.4, "stemmer": "snowball", "stopwords": "language", "threads": 1,
        "language": "${oc.select:language,english}",  # the root key of the run
    }  # fmt: skip
    assert (cfg["n_tokens"], cfg["bootstrap"], cfg["gate"]) == (300, 1000, {"ir_score": 0.1})


def test_where_it_writes_is_today_s_and_a_predictor_is_not_registered_again(
    log: Log, uri: str, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = log("register_predictor=ours")
    cfg = again(run_id, uri, conf)
    assert cfg["store"] == "${oc.env:RAGAUGE_STORE,.ragauge}"
    assert cfg["register_predictor"] is None
    assert "not registered again" in capsys.readouterr().err
    assert again(run_id, uri, conf, "store=mine")["store"] == "mine"


def test_overrides_and_other_parts_may_follow(log: Log, uri: str, conf: Path) -> None:
    run_id = log("retriever=bm25", "retriever.top_k=7")
    assert again(run_id, uri, conf, "retriever.top_k=20")["retriever"]["top_k"] == 20
    assert again(run_id, uri, conf, "retriever=mmr", "retriever.fetch_k=99")["retriever"] == {
        "_target_": "ragauge.retrieval.retrievers.MMR", "top_k": 30, "fetch_k": 99, "lambda_mult": 0.5,
    }  # fmt: skip


def test_a_part_whose_option_is_not_in_conf_runs_from_what_was_logged(log: Log, uri: str, conf: Path) -> None:
    run_id = log("retriever=bm25", "retriever.k1=0.7")
    (conf / "retriever" / "bm25.yaml").unlink()
    root = conf / "config.yaml"
    root.write_text(root.read_text().replace("retriever: bm25", "retriever: sim"))
    assert again(run_id, uri, conf)["retriever"]["k1"] == 0.7


def test_the_new_job_is_named_and_tagged_by_the_logged_choices(log: Log, uri: str, conf: Path) -> None:
    run_id = log("retriever=bm25", "retriever.top_k=7", "n_tokens=300")
    with argument.prepared([f"rerun={run_id}", f"tracking.uri={uri}"], conf) as made:
        own = f"run_{run_id}"
        choices = {"rerun": own, "retriever": own, "chunker": own, "measure": "words"}
        origin = argument.origin(Path(made[1]), choices, [f"rerun={own}", "measure=words", "n_tokens=5"])
    assert origin is not None
    assert (origin.run_id, origin.sweep) == (run_id, None)
    assert origin.choices == {"retriever": "bm25", "chunker": "none", "measure": "words"}
    assert origin.overrides[:4] == tuple(CHEAP)
    assert origin.overrides[-4:] == ("retriever=bm25", "retriever.top_k=7", "measure=words", "n_tokens=5")
    assert argument.origin(conf, {}, []) is None


def test_a_value_from_the_environment_needs_trust(
    log: Log, uri: str, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPTH", "7")
    run_id = log("retriever.top_k=${oc.env:DEPTH}")
    monkeypatch.setenv("DEPTH", "8")
    with pytest.raises(ConfigError, match=r"retriever.top_k=\$\{oc.env:DEPTH\} \(reads the environment"):
        again(run_id, uri, conf)
    cfg = again(run_id, uri, conf, "trust=true")
    assert cfg["retriever"]["top_k"] == "${oc.env:DEPTH}"


def test_a_key_of_another_version_stops_the_rerun_unless_it_is_left_out_on_purpose(
    log: Log, uri: str, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = log(forgotten=3, estimate={"features": ["ir_score"], "bent": True})
    with pytest.raises(ConfigError, match=r"forgotten=3, which this version does not know .* '~forgotten'"):
        again(run_id, uri, conf, "~estimate.bent")
    cfg = again(run_id, uri, conf, "~forgotten", "~estimate.bent")
    assert "forgotten" not in cfg
    assert "override" not in capsys.readouterr().err
    assert cfg["estimate"] == {"features": ["ir_score"], "spline": False, "calibrate": False}


def test_a_secret_and_a_ledger_that_is_not_here_are_asked_for(log: Log, uri: str, conf: Path) -> None:
    run_id = log(predictor="models:/***/1")
    with pytest.raises(ConfigError, match=r"predictor was logged as .* give predictor="):
        again(run_id, uri, conf)
    assert again(run_id, uri, conf, "predictor=null")["predictor"] is None
    llm = ["llm=openai", "llm.ledger=/nowhere/at/all/calls.db"]
    with pytest.raises(ConfigError, match=r"llm.ledger=/nowhere/at/all/calls.db is not here"):
        again(log(*llm), uri, conf)


def test_a_sweep_is_a_multirun_over_its_jobs_in_their_order(log: Log, uri: str, conf: Path) -> None:
    second = log("n_tokens=200", tags={"sweep_id": "s", "job": 1})
    first = log("n_tokens=100", tags={"sweep_id": "s", "job": 0})
    pooled = log(tags={"role": "sweep", "sweep_id": "s"})
    arguments = [f"rerun={pooled}", f"tracking.uri={uri}", "hydra/launcher=joblib"]
    with argument.prepared(arguments, conf) as made:
        assert made[2:] == ["--multirun", *arguments[1:], f"rerun=run_{first},run_{second}"]
        with initialize_config_dir(made[1], version_base="1.3"):
            budgets = [compose("config", overrides=[f"rerun=run_{i}"]).n_tokens for i in (first, second)]
    assert budgets == [100, 200]
    with pytest.raises(ConfigError, match="n_tokens: the jobs of the sweep differ in this"):
        again(pooled, uri, conf, "n_tokens=300")
    with pytest.raises(ConfigError, match="give the id of one of the jobs"):
        again(pooled, uri, conf, "--cfg")


# --- what others logged does not run unasked --------------------------------------------------------------

EVIL = {"_target_": "os.mkdir", "path": "executed"}


def refusal(run_id: str, uri: str, conf: Path, *further: str) -> str:
    """What the rerun is refused with: a head, and a line for each objection."""
    with pytest.raises(ConfigError) as caught:
        again(run_id, uri, conf, *further)
    head, *lines = str(caught.value).splitlines()
    assert head.endswith("trust=true if you trust whoever logged it")
    return "\n".join(line.strip() for line in lines)


def retriever(**more: Any) -> dict[str, Any]:
    return {"_target_": "ragauge.retrieval.retrievers.BM25", "top_k": 7, **more}


RUNS, READS = "runs code", "reads the environment, or what else a resolver does"
FILES, CHAINED = "may read this file or folder", "names a value that is made of others itself"
NAMES, REACHES, WRITES = "reads this environment variable", "reaches this address", "writes this file"


@pytest.mark.parametrize(
    ("node", "key", "value", "why"),
    [
        (retriever(nested=EVIL), "nested._target_", "os.mkdir", RUNS),
        (retriever(nested=[[{"deep": EVIL}]]), "nested[0][0].deep._target_", "os.mkdir", RUNS),
        ({"_target_": "subprocess.Popen", "args": "true"}, "_target_", "subprocess.Popen", RUNS),
        ({"_target_": "builtins.eval", "_args_": ["1"]}, "_target_", "builtins.eval", RUNS),
        ({"_target_": "os.system", "_partial_": True}, "_target_", "os.system", RUNS),
        ({"_target_": "hydra.utils.get_method", "path": "x"}, "_target_", "hydra.utils.get_method", RUNS),
        ({"_target_": "ragauge.llms.calls.os.system"}, "_target_", "ragauge.llms.calls.os.system", RUNS),
        (
            {"_target_": "ragauge.retrieval.retrievers.bm25.Path"},
            "_target_",
            "ragauge.retrieval.retrievers.bm25.Path",
            RUNS,
        ),
        ({"_target_": "ragauge.commands.compare.main"}, "_target_", "ragauge.commands.compare.main", RUNS),
        (
            {"_target_": "ragauge.experiment.request.write_json"},
            "_target_",
            "ragauge.experiment.request.write_json",
            RUNS,
        ),
        ({"_target_": "${llm.name}.mkdir"}, "_target_", "${llm.name}.mkdir", RUNS),
        ({"_target_": ["os.mkdir"]}, "_target_", "['os.mkdir']", RUNS),
        (retriever(note="${oc.env:AWS_SECRET}"), "note", "${oc.env:AWS_SECRET}", READS),
        (retriever(note="${${seed}:x}"), "note", "${${seed}:x}", READS),
        (retriever(note="${oc.create:{_target_:f}}"), "note", "${oc.create:{_target_:f}}", READS),
        (retriever(api_key_env="AWS_SECRET"), "api_key_env", "AWS_SECRET", NAMES),
        (retriever(base_url="https://evil.example/v1"), "base_url", "https://evil.example/v1", REACHES),
        (retriever(base_url="evil.example:11434"), "base_url", "evil.example:11434", REACHES),
        (retriever(url="http://localhost@evil.test/"), "url", "http://***@evil.test/", REACHES),
        (retriever(x="http://evil.example\\@127.0.0.1/"), "x", "http://***@127.0.0.1/", REACHES),
        (retriever(x="evil.example", base_url="${retriever.x}"), "base_url", "${retriever.x}", REACHES),
        (retriever(ledger="../theirs.db"), "ledger", "../theirs.db", WRITES),
        (retriever(ledger="private.db"), "ledger", "private.db", WRITES),  # a database that is no ledger
        (retriever(model="private"), "model", "private", FILES),
        (retriever(model="./private/../private"), "model", "./private/../private", FILES),
        (retriever(model="~"), "model", "~", FILES),
        (retriever(model="file:private"), "model", "file:private", FILES),
        (retriever(note=["a", "private"]), "note[1]", "private", FILES),
        (retriever(x="priv", note="${.x}ate"), "note", "${.x}ate", FILES),
        (retriever(x="${store}/traces"), "x", "${store}/traces", "cannot be resolved"),
        (retriever(model="porter2"), "model", "porter2", FILES),  # conf/ names it as a stemmer, and not so
        (retriever(x="${seed}", note="${.x}"), "note", "${.x}", CHAINED),
        (retriever(split="/nowhere/list"), "split", "/nowhere/list", FILES),  # a loader reads /nowhere/list.tsv
        (retriever(split="a/../../list"), "split", "a/../../list", FILES),
        (retriever(split="~them/list"), "split", "~them/list", FILES),
    ],
)  # fmt: skip
def test_what_a_logged_config_would_run_read_or_reach_is_listed_and_needs_trust(
    log: Log,
    uri: str,
    conf: Path,
    node: dict[str, Any],
    key: str,
    value: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "private").mkdir()
    (tmp_path / "porter2").mkdir()
    with sqlite3.connect(tmp_path / "private.db") as database:
        database.execute("CREATE TABLE passwords (site TEXT)")
    assert refusal(log(retriever=node), uri, conf) == f"retriever.{key}={value} ({why})"
    assert not (tmp_path / "executed").exists()


def test_all_objections_are_listed_at_once_with_their_keys_and_do_nothing_to_a_terminal(
    log: Log, uri: str, conf: Path
) -> None:
    llm = {
        "_target_": "ragauge.answering.ChatGenerator",
        "chat": {"_target_": "os.system", "command": "x"},
    }
    run_id = log(retriever=retriever(nested=EVIL, base_url="\x1b[2Jhttp://x"), llm=llm)
    lines = refusal(run_id, uri, conf).splitlines()
    assert sorted(line.split("=")[0] for line in lines) == [
        "llm.chat._target_", "retriever.base_url", "retriever.nested._target_",
    ]  # fmt: skip
    assert "\x1b" not in "".join(lines)
    # A part that the user names instead is the user's own.
    one = log(retriever=retriever(nested=EVIL))
    assert (
        again(one, uri, conf, "retriever=none")["retriever"]["_target_"] == "ragauge.retrieval.retrievers.NoRetrieval"
    )


def test_a_run_cannot_trust_itself(log: Log, uri: str, conf: Path) -> None:
    run_id = log("trust=true", retriever=retriever(nested=EVIL))
    assert "os.mkdir" in refusal(run_id, uri, conf)
    assert again(run_id, uri, conf, "trust=true")["trust"] is True
    assert again(log("trust=true"), uri, conf)["trust"] is False


def test_a_folder_of_this_machine_is_read_where_the_command_line_or_a_config_of_this_clone_names_it(
    log: Log, uri: str, conf: Path, tmp_path: Path
) -> None:
    private = str(tmp_path / "private")
    (tmp_path / "private").mkdir()
    run_id = log("dataset=folder", f"dataset.path={private}")
    assert refusal(run_id, uri, conf) == f"dataset.path={private} ({FILES})"
    for given in (f"dataset.path={private}", "trust=true"):
        assert again(run_id, uri, conf, given)["dataset"]["path"] == private
    (conf / "dataset" / "mine.yaml").write_text(f"defaults: [folder, _self_]\npath: {private}\n")
    assert again(run_id, uri, conf)["dataset"]["path"] == private


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "has an anchor, an alias or a tag in line 1; none is allowed"),
        ("gate: " + "[" * 60_000, "has more than 50 brackets within each other"),
        ("gate: " + "x" * 70_000, r"has 70,006 characters; allowed are 65,536"),
        ("gate: " + "${" * 30_000, "has 30,000 interpolations; allowed are 200"),
        ("gate: 1" + ":1" * 1_000 + ".5", "cannot be read: int too large to convert to float"),
        ("5", "cannot be read: it is no mapping or list"),
        # Neither is a text, and a loader opens both.
        ("a: 1\nb: !!python/object/apply:pathlib.Path [/etc]", "has an anchor, an alias or a tag in line 2"),
        ("a: !!binary L2V0Yw==", "has an anchor, an alias or a tag in line 1"),
    ],
    ids=["aliases", "brackets", "size", "references", "sexagesimal", "number", "path", "bytes"],
)
@pytest.mark.parametrize("file", ["config.yaml", "overrides.yaml"])
def test_a_logged_file_that_would_fill_memory_or_hide_a_path_is_refused_at_once(
    log: Log, uri: str, conf: Path, file: str, text: str, says: str
) -> None:
    from mlflow import MlflowClient

    run_id = log()
    MlflowClient(uri).log_text(run_id, text, f"config/{file}")
    with pytest.raises(ConfigError, match=rf"its config/{file} {says}"):
        again(run_id, uri, conf)


def test_interpolations_that_would_double_a_text_time_and_again_are_refused(log: Log, uri: str, conf: Path) -> None:
    bomb = {f"a{i}": f"${{.a{i - 1}}}${{.a{i - 1}}}" for i in range(1, 60)}
    lines = refusal(log(retriever=retriever(a0="x" * 10, **bomb)), uri, conf).splitlines()
    assert lines[0] == f"retriever.a2=${{.a1}}${{.a1}} ({CHAINED})"


def test_a_logged_choice_of_a_file_outside_of_conf_is_not_read(
    log: Log, uri: str, conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    (tmp_path / "private.yaml").write_text("hidden: treasure\n")
    up = os.path.relpath(tmp_path / "private", conf / "dataset")
    run_id = log()
    MlflowClient(uri).log_text(run_id, f"[dataset={up}]", "config/overrides.yaml")
    again(run_id, uri, conf)
    assert "treasure" not in capsys.readouterr().err


@pytest.mark.parametrize("override", ["slices=" + "[" * 999 + "]" * 999, "+" + "a." * 999 + "a=1"])
def test_logged_files_that_no_run_wrote_end_a_rerun_in_no_traceback(
    log: Log, uri: str, conf: Path, override: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    run_id = log()
    MlflowClient(uri).log_text(run_id, f"['{override}']", "config/overrides.yaml")
    MlflowClient(uri).log_text(run_id, "# python\n# \n==\n", "config/packages.txt")
    again(run_id, uri, conf)
    assert "the run has no record of its packages" in capsys.readouterr().err


@pytest.mark.parametrize("llm", ["openai", "openai_compatible", "ollama"])
def test_the_shipped_chat_models_and_addresses_need_no_trust(log: Log, uri: str, conf: Path, llm: str) -> None:
    model = [] if llm == "openai" else [f"{part}.chat.model=m" for part in ("llm", "judge")]
    cfg = again(log(f"llm={llm}", f"judge={llm}", *model), uri, conf)
    assert cfg["llm"]["chat"]["_target_"].startswith("langchain_")


def test_what_the_user_s_own_folders_name_needs_no_trust(log: Log, uri: str, conf: Path, tmp_path: Path) -> None:
    run_id = log(retriever=retriever(nested=EVIL))
    own = tmp_path / "own" / "retriever"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("_target_: os.mkdir\n")
    assert again(run_id, uri, conf, f"--config-dir={own.parent}")["retriever"]["nested"] == EVIL
    shutil.copy(own / "mine.yaml", conf / "retriever")
    assert again(run_id, uri, conf)["retriever"]["nested"] == EVIL


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"retriever": {"defaults": [{"/dataset": "csv"}]}}, "retriever.defaults is not allowed"),
        ({"retriever": "defaults: [x]"}, "retriever is no mapping"),
        ({"tracking": "x"}, "tracking is no mapping"),
        ({"hydra": {"run": {"dir": "/somewhere"}}}, "hydra.*which this version does not know"),
        ({"defaults": ["x"]}, "defaults.*which this version does not know"),
    ],
)
def test_a_logged_config_cannot_give_hydra_orders(
    log: Log, uri: str, conf: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        again(log(**changes), uri, conf)


def test_logged_overrides_of_hydra_are_not_composed(
    log: Log, uri: str, conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foreign_configs").mkdir()
    (tmp_path / "foreign_configs" / "__init__.py").write_text(
        f"import pathlib; pathlib.Path({str(tmp_path / 'imported')!r}).touch()"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = log()
    OmegaConf.save(["hydra.searchpath=[pkg://foreign_configs]"], tmp_path / "config" / "overrides.yaml")
    with track.Tracker(uri, "foreign").run("r", {}, {"role": "job"}) as run:
        shutil.copytree(tmp_path / "config", run.folder / "config")
    again(run.run_id, uri, conf)
    assert own != run.run_id
    assert not (tmp_path / "imported").exists()


# --- what differs, and what cannot be ---------------------------------------------------------------------


def test_a_rerun_of_a_sweep_says_of_each_job_what_it_had_and_which_are_left_out(
    log: Log, uri: str, conf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    from mlflow import MlflowClient

    here = {"ragauge_version": "1.0", "git_commit": "c0ffee"}
    monkeypatch.setattr(provenance, "origin_tags", lambda: here)
    of = [{"sweep_id": "u", "job": i} for i in range(3)]
    error = {"error": "MissingError: too many"}
    shallow = log("retriever=bm25", "retriever.top_k=7", "n_tokens=100", tags={**of[0], **error})
    here["ragauge_version"] = "1.1"
    deep = log("retriever=sim", "n_tokens=200", tags=of[1])
    with track.Tracker(uri, request.node.name).run("a bare run", {}, {"role": "job", **of[2]}) as bare:
        pass
    for failed in (shallow, bare.run_id):
        MlflowClient(uri).set_terminated(failed, status="FAILED")
    pooled = log(tags={"role": "sweep", **of[0]})
    given = [f"rerun={pooled}", f"tracking.uri={uri}", "store=mine", "retriever.top_k=9", "llm=none", "-m"]
    with argument.prepared(given, conf) as made:
        folder = Path(made[1])
        assert made[2:] == [*given[1:], f"rerun=run_{shallow},run_{deep}"]
        options = [f"run_{i}" for i in (shallow, deep)]
        again = [argument.origin(folder, {"rerun": o, "retriever": o, "llm": "none"}, ["llm=none"]) for o in options]
    assert not folder.exists()
    assert [(o.run_id, o.sweep, o.choices) for o in again if o] == [
        (shallow, pooled, {"retriever": "bm25", "llm": "none"}), (deep, pooled, {"retriever": "sim", "llm": "none"}),
    ]  # fmt: skip
    assert [o.overrides.count("llm=none") for o in again if o] == [1, 1]
    assert capsys.readouterr().err.splitlines() == [
        f"rerun of sweep {pooled}, 2 job(s)",
        f"  a run ({shallow}) is FAILED: MissingError: too many",
        f"  a bare run ({bare.run_id}) is FAILED: no error on record",
        f"  a bare run ({bare.run_id}) ended before its configuration was logged; left out",
        "  ragauge is 1.1 here, the run had 1.0",
    ]
    with argument.prepared([f"rerun={deep}", f"tracking.uri={uri}"], conf) as made:
        assert made[2:] == [f"tracking.uri={uri}", f"rerun=run_{deep}"]
    assert capsys.readouterr().err.splitlines() == [
        f"rerun of {deep}, 1 job(s)",
        "  code, Python and packages are the same",
    ]


def test_runs_that_cannot_be_run_again_are_errors_that_say_why(log: Log, uri: str, conf: Path) -> None:
    with pytest.raises(ConfigError, match=r"MLflow at sqlite:.* holds no run nosuch"):
        again("nosuch", uri, conf)
    with pytest.raises(ConfigError, match="was not made by ragauge"):
        again(log(tags={"role": "other"}), uri, conf)
    with track.Tracker(uri, "bare").run("bare", {}, {"role": "job"}) as bare:
        pass
    with pytest.raises(ConfigError, match=r"no config/config.yaml among the artifacts of 1 job"):
        again(bare.run_id, uri, conf)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rerun="], "give the id of one MLflow run"),
        (["rerun=a", "rerun=b"], "give the id of one MLflow run"),
        (["rerun=a,b"], "give the id of one MLflow run"),
        (["rerun=a", "experiment=paper"], "holds its preset already"),
        (["rerun=a", "--config-name=other"], "takes the configuration that the run logged"),
        (
            ["rerun=a", "tracking.uri=sqlite:///nowhere/m.db"],
            r"no MLflow database at nowhere/m.db; .*tracking.uri=",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], message: str, conf: Path) -> None:
    with pytest.raises(ConfigError, match=message), argument.prepared(arguments, conf):
        pass
    assert not Path("nowhere").exists()


# --- old against new --------------------------------------------------------------------------------------


def test_metrics_are_matched_by_name_to_the_last_bit_and_those_of_effort_are_left_out(
    uri: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = track.Tracker(uri, request.node.name)
    monkeypatch.setattr(comparison, "progress", counted := CountedProgress())

    def logged(**metrics: float) -> str:
        with tracker.run("r", {}, {}) as run:
            run.metrics(metrics)
        return run.run_id

    pairs = [
        (logged(ir_score=0.3, seconds_total=2.0, **old), logged(ir_score=new, stages_made=4.0, llm_calls=n))
        for new, n, old in ((0.3, 1.0, {}), (0.1 + 0.2, 2.0, {}), (0.3, 3.0, {"gone": 1.0}), (0.5, 4, {}), (0.6, 5, {}))
    ]
    records = [record_of(name=f"job {i}", run_id=new, rerun={"run_id": old, "sweep": None})
               for i, (old, new) in enumerate(pairs)]  # fmt: skip
    with tracker.run("sweep", {}, {}) as run:
        lines = argument.of_sweep(Jobs("s", "e", records, [], pd.DataFrame())).compared(tracker, run)
    shows = [f"ragauge compare {old} {new} shows more" for old, new in pairs]
    assert lines == [
        "\nagainst the runs that were repeated:", "1 of 5 jobs equal to the last bit in every metric",
        f"job 1: 0 of 1 metrics equal to the last bit; {shows[1]}\n  ir_score 0.3 → 0.30000000000000004",
        f"job 2: 1 of 2 metrics equal to the last bit; {shows[2]}\n  gone 1.0 → none",
        f"job 3: 0 of 1 metrics equal to the last bit; {shows[3]}\n  ir_score 0.3 → 0.5",
        "and 1 more",
    ]  # fmt: skip
    assert counted.done == {"comparing old and new": (5, 5)}


def test_a_rerun_of_a_sweep_is_compared_job_by_job_and_pooled(uri: str, request: pytest.FixtureRequest) -> None:
    tracker = track.Tracker(uri, request.node.name)

    def logged(**metrics: float) -> str:
        with tracker.run("r", {}, {"dataset_digest": "d1", "prompts": "p1"}) as run:
            run.metrics(metrics)
        return run.run_id

    old_sweep, old_job = logged(ir_score=0.5, jobs=2.0), logged(ir_score=0.5, cost_usd=2.0)
    new_job = logged(ir_score=0.5, cost_usd=0.5)
    for group, sweep, last in (
        ("", old_sweep, "pooled: 1 of 2 metrics equal to the last bit; ragauge compare OLD NEW shows more\n"
         "  jobs 2.0 → none"),
        ("judge=chat", old_sweep, "pooled: not compared, since one group of the repeated run has become several"),
        ("", None, None),
    ):  # fmt: skip
        record = record_of(name="bm25", run_id=new_job, rerun={"run_id": old_job, "sweep": sweep})
        found = argument.of_sweep(Jobs("s", "e", [record_of(name="new one"), record], [], pd.DataFrame(), group))
        assert found.tags == ({"rerun_of": old_sweep} if sweep else {})
        with tracker.run("sweep", {}, {}) as run:
            run.metrics({"ir_score": 0.5})
            lines = found.compared(tracker, run)
        assert lines == [
            "\nagainst the runs that were repeated:", "1 of 1 jobs equal to the last bit in every metric",
            *([last.replace("OLD", old_sweep).replace("NEW", run.run_id)] if last else []),
        ]  # fmt: skip
    origin = Origin(old_job, None, {}, (), track.Reader(uri).run(old_job).tags)
    assert origin.record == {"rerun": {"run_id": old_job, "sweep": None}}
    with tracker.resume(new_job) as run:
        told = origin.compared(tracker, run)
    assert told == ["1 of 1 metrics equal to the last bit"]
    assert origin.changed({"dataset_digest": "d1", "prompts": "p2", "other": "x"}) == [
        "prompts is p2 here, the run had p1", "other is x here, the run had none on record",
    ]  # fmt: skip


def test_twenty_differences_are_told_one_by_one_and_packages_that_change_no_number_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(provenance, "origin_tags", lambda: {"ragauge_version": "1.1", "git_commit": "c1"})
    monkeypatch.setattr(provenance, "installed_packages", lambda: {"numpy": "2", "scipy": "1", "a": "1", "g": "1"})
    had = {"numpy": "1", "scipy": "1", "torch": "3", **dict.fromkeys("abcdef", "0")}
    assert environment_differences({"ragauge_version": "1.1", "git_commit": "c1"}, had) == [
        "numpy is 2 here, the run had 1", "torch is missing here, the run had 3",
        "7 other package(s) differ: a, b, c, d, e, ...",
    ]  # fmt: skip
    assert environment_differences({"git_commit": "c1-dirty"}, {}) == [
        "ragauge is 1.1 here, the run had none on record", "git commit is c1 here, the run had c1-dirty",
        "no git commit identifies the run's code: none on record, or changes beside it",
        "the run has no record of its packages",
    ]  # fmt: skip
    for n in (20, 22):
        tell("again", [f"d{i}" for i in (*range(n), 0)])
        more = ["  and 2 more difference(s)"] if n > 20 else []
        assert capsys.readouterr().err.splitlines() == ["again", *(f"  d{i}" for i in range(20)), *more]


# --- one clone, and another -------------------------------------------------------------------------------


def clone(folder: Path) -> Path:
    """What a clone has beside the installed package."""
    folder.mkdir()
    shutil.copy(ROOT / "run.py", folder)
    shutil.copytree(ROOT / "conf", folder / "conf")
    return folder


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = clean_environment(**environment)
    done = Command(folder, *arguments, program=str(folder / "run.py"), environment=given).wait()
    assert done.returncode == 0, done.stderr
    return done


def runs_of(uri: str, **tags: str) -> list[Any]:
    from mlflow import MlflowClient

    query = " and ".join(f"tags.`{k}` = '{v}'" for k, v in tags.items())
    return list(MlflowClient(uri).search_runs(["1"], query, order_by=["start_time"]))


def scores(uri: str, run_id: str) -> dict[str, float]:
    metrics = track.Reader(uri).metrics(run_id)
    return {k: v for k, v in metrics.items() if comparison._EFFORT.fullmatch(k) is None}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, bring_models: Callable[..., None]) -> tuple[Path, str]:
    """Where a sweep of two retrievers at two budgets was measured in one clone, and its tracking URI."""
    folder = tmp_path_factory.mktemp("clones")
    theirs = clone(folder / "theirs")
    bring_models(theirs / ".ragauge")
    small = ["dataset.limit=12", "chunker=none", "bootstrap=20", "retriever.top_k=7"]
    sweep = ["-m", *small, "retriever=bm25,sim", "n_tokens=100,300"]
    done = run_fresh(theirs, *sweep, program=str(theirs / "run.py"))
    assert done.returncode == 0, done.stderr
    return folder, f"sqlite:///{theirs}/mlruns/mlflow.db"


@pytest.mark.slow
def test_a_run_of_one_clone_is_rerun_in_another_to_the_last_bit(
    measured: tuple[Path, str], bring_models: Callable[..., None]
) -> None:
    folder, uri = measured
    ours = clone(folder / "ours")
    bring_models(ours / ".ragauge", vectors=False)
    bm25 = ours / "conf" / "retriever" / "bm25.yaml"
    bm25.write_text(bm25.read_text().replace("k1: 0.9", "k1: 1.5"))
    old = runs_of(uri, role="job", retriever="bm25", n_tokens="300")[0]
    done = run(ours, f"rerun={old.info.run_id}", MLFLOW_TRACKING_URI=uri)
    (new,) = runs_of(uri, rerun_of=old.info.run_id)
    assert new.info.status == "FINISHED"
    before, after = scores(uri, old.info.run_id), scores(uri, new.info.run_id)
    assert {"ir_score", "ir_score_lo", "ir_score_at_n[100]", "ir_score_at_n[300]", "ndcg_at_10"} < set(before)
    assert {"judge_share_1", "threshold_h", "predictor_log_loss"} < set(before)
    assert before == after
    assert after["ir_score"] > 0
    assert f"{len(before)} of {len(before)} metrics equal to the last bit" in done.stdout
    assert "the dataset is the same" in done.stderr
    same = ("retriever", "chunker", "llm", "dataset_digest", "mlflow.runName")
    assert {k: new.data.tags[k] for k in same} == {k: old.data.tags[k] for k in same}
    assert {k: v for k, v in new.data.params.items() if old.data.params.get(k) != v} == {}
    # It measured in a store of its own.
    assert len(list((ours / ".ragauge").glob("run/*/key.json"))) == 1


@pytest.mark.slow
def test_a_sweep_of_one_clone_is_rerun_in_another_job_by_job_and_pooled(
    measured: tuple[Path, str], bring_models: Callable[..., None]
) -> None:
    folder, uri = measured
    ours = clone(folder / "sweeping")
    bring_models(ours / ".ragauge", vectors=False)
    sweep = runs_of(uri, role="sweep")[0]
    done = run(ours, f"rerun={sweep.info.run_id}", f"tracking.uri={uri}")
    (pooled,) = runs_of(uri, rerun_of=sweep.info.run_id)
    assert scores(uri, pooled.info.run_id) == scores(uri, sweep.info.run_id)
    assert pooled.data.metrics["jobs"] == 4
    jobs = runs_of(uri, role="job", sweep_id=pooled.data.tags["sweep_id"])
    assert len(jobs) == 4
    for job in jobs:
        old = track.Reader(uri).run(job.data.tags["rerun_of"])
        assert old.tags["sweep_id"] == sweep.data.tags["sweep_id"]
        for name in ("retriever", "n_tokens", "job"):
            assert old.tags[name] == job.data.tags[name]
        assert scores(uri, old.run_id) == scores(uri, job.info.run_id)
    assert "4 of 4 jobs equal to the last bit in every metric" in done.stdout
    assert "Leaderboard at N = 300 tokens, 12 topics" in done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines() if "%*" in line} == {"bm25", "sim"}


@pytest.mark.slow
def test_with_a_shared_ledger_a_rerun_asks_the_llm_nothing(tmp_path: Path) -> None:
    theirs, ours = clone(tmp_path / "theirs"), clone(tmp_path / "ours")
    uri = f"sqlite:///{theirs}/mlruns/mlflow.db"

    def reply(prompt: str) -> str:
        return '{"label": 5, "reason": "right"}' if "label" in prompt else f"It is {len(prompt)}."

    with ChatServer(reply) as server:
        run(
            theirs, "dataset.limit=6", "chunker=none", "bootstrap=20", "llm=openai_compatible",
            "judge=openai_compatible", "tokenizer=words",
            *(f"{part}.{value}" for part in ("llm", "judge") for value in (
                "chat.model=m", f"chat.base_url={server.url}/v1", f"ledger={tmp_path}/calls.db")),
            RAGAUGE_API_KEY=KEY,
        )  # fmt: skip
        (old,) = runs_of(uri, role="job")
        asked = sum(server.calls.values())
        assert asked == 12
        done = run(ours, f"rerun={old.info.run_id}", MLFLOW_TRACKING_URI=uri, RAGAUGE_API_KEY=KEY)
        assert sum(server.calls.values()) == asked
    (new,) = runs_of(uri, rerun_of=old.info.run_id)
    assert scores(uri, new.info.run_id) == scores(uri, old.info.run_id)
    assert new.data.metrics["correct_share"] == 1
    assert (new.data.metrics["llm_calls"], new.data.metrics["cost/llm_calls_cached"]) == (0, 6)
    assert "metrics equal to the last bit" in done.stdout
