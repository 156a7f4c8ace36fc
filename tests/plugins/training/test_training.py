"""A training around its trainer: splits, leaks, before and after, the MLflow run, once more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from plugins.training.copy_trainer import CopyTrainer
from processes import Command
from ragauge import track
from ragauge.compare import members
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.job_files import begin_attempt
from ragauge.contract.stages import Components
from ragauge.datasets import SampleDataset
from ragauge.experiment.request import JobFolder, write_json
from ragauge.experiment.sweep.jobs import find, records_in
from ragauge.plugins.training import config
from ragauge.plugins.training.jobs import of_dataset
from ragauge.plugins.training.jobs.comparison import as_metrics, gains
from ragauge.plugins.training.jobs.job import execute
from ragauge.plugins.training.jobs.leaks import leaked, sharing_documents
from ragauge.plugins.training.jobs.split_dataset import SplitDataset, TopicsLeftOut
from ragauge.plugins.training.jobs.splits import Splits, load_splits
from ragauge.plugins.training.jobs.sweep import finish
from small_pipeline import SmallPipelines
from tiny_encoder import write_encoder

COPY_TRAINER = ("~trainer", "+trainer._target_=plugins.training.copy_trainer.CopyTrainer")  # no option of conf/trainer
CONF = Path(__file__).resolve().parents[3] / "conf"
Train = Callable[..., tuple[int, dict[str, object]]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def train(tmp_path: Path, tiny: Path) -> Train:
    """Runs a training with the trainer that copies a tiny model; its exit code and its record."""

    def run(*overrides: str) -> tuple[int, dict[str, object]]:
        config.register()
        folder = JobFolder(tmp_path / "out", None, 0, {"trainer": "copy"}, overrides)
        given = ["dataset=sample", "dataset.limit=30", "retriever=bm25", f"store={tmp_path / 's'}"]
        given += [f"tracking.uri=sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}", "measures=[P@1,R@5]"]
        given += [f"+trainer.model={tiny}"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("train", overrides=[*COPY_TRAINER, *given, *overrides])
        code = execute(cfg, folder)
        return code, json.loads((tmp_path / "out" / "job.json").read_text(encoding="utf-8"))

    return run


def test_a_training_leaves_a_run_a_model_a_card_and_what_it_learnt_from(train: Train, tmp_path: Path) -> None:
    code, record = train("register=copied", "leaks=drop")
    assert code == 0, record
    reader = track.Reader(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    run = reader.run(str(record["run_id"]))
    assert run.status == "FINISHED"
    assert (run.tags["role"], run.tags["trainer"]) == ("training", "copy")
    assert reader.history(run.run_id, "loss") == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}
    metrics = reader.metrics(run.run_id)
    assert metrics["alone_p_at_1_before"] == metrics["alone_p_at_1_after"]
    assert metrics["alone_p_at_1_gain"] == 0
    assert metrics["training_topics"] + metrics["training_topics_left_out"] + metrics["validation_topics"] == 30
    mined = reader.table(run.run_id, "negatives.json")
    assert len(mined) == metrics["training_topics"] == metrics["examples"]
    card = reader.text(run.run_id, "README.md")
    assert card.startswith("# copied\n")
    assert "| validation | all | alone | P@1 |" in card
    folder = track.model_folder(reader.uri, "models:/copied/1", "embedder.model")
    assert (folder / "modules.json").is_file()


def test_a_training_that_was_done_is_not_done_again_and_the_new_run_has_its_charts(
    train: Train, tmp_path: Path
) -> None:
    first = train("leaks=drop")[1]
    second = train("leaks=drop")[1]
    assert first["model_digest"] == second["model_digest"]
    assert len(list((tmp_path / "s" / "trained").iterdir())) == 1
    reader = track.Reader(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    assert reader.history(str(second["run_id"]), "loss") == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}
    assert train("leaks=drop", "seed=1")[0] == 0
    assert len(list((tmp_path / "s" / "trained").iterdir())) == 2


def test_a_training_that_fails_leaves_its_checkpoint_and_registers_nothing(train: Train, tmp_path: Path) -> None:
    code, record = train("leaks=drop", "+trainer.fails=true", "register=never")
    assert (code, record["error"]) == (2, "trainer: one topic is too few to learn from")
    (checkpoint,) = (tmp_path / "s" / "checkpoints").glob("*/last")
    assert checkpoint.read_text(encoding="utf-8") == "3"
    from mlflow import MlflowClient

    assert MlflowClient(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}").search_registered_models() == []


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("leaks=perhaps", "leaks='perhaps': allowed are error, drop"),
        ("max_seconds=0", "max_seconds=0.0: allowed are numbers from 1, and null (as long as it takes)"),
        ("register=a/b", "register='a/b': allowed are names without /, :, % and white space"),
        (
            "++validation.topics=x",
            "validation.topics: dataset sample has no such key; it has: limit, name, on_error",
        ),
        ("validation_share=2", "validation_share=2.0: allowed are numbers from 0.01 to 0.9"),
        ("dataset@elsewhere=samples", "elsewhere.path"),
    ],
)
def test_bad_input_is_one_line_before_any_work(train: Train, tmp_path: Path, override: str, told: str) -> None:
    code, record = train(override)
    assert code == 2
    assert told.replace("elsewhere.path", "dataset.path") in str(record["error"])
    assert not (tmp_path / "s" / "trained").exists()


def test_validation_questions_in_the_training_are_an_error_that_names_them(train: Train) -> None:
    code, record = train("++validation.limit=2")  # the first two of the training's own topics
    assert code == 2
    assert str(record["error"]).startswith("2 of 2 validation questions stand in the training, word for word or")
    code, record = train("++validation.limit=2", "leaks=drop")
    assert code == 0
    metrics = record["metrics"]
    assert isinstance(metrics, dict)
    assert (metrics["training_topics"], metrics["training_topics_left_out"]) == (28, 2)


def test_a_validation_that_is_the_training_leaves_nothing_to_train_on(train: Train) -> None:
    code, record = train("++validation.limit=30", "leaks=drop")
    assert code == 2
    assert str(record["error"]).startswith("all 30 training questions stand in the validation")


def test_one_topic_makes_no_two_sides(train: Train) -> None:
    code, record = train("dataset.limit=1")
    assert (code, record["error"]) == (2, "dataset sample: no topic is left to evaluate")


def test_runs_are_for_another_trainer(train: Train) -> None:
    code, record = train("runs=[0123]")
    assert code == 2
    assert str(record["error"]).startswith("runs: a trainer of kind encoder learns from a dataset")


def test_an_elsewhere_that_is_the_dataset_itself_is_told(train: Train, caplog: pytest.LogCaptureFixture) -> None:
    assert train("leaks=drop", "dataset@elsewhere=sample", "elsewhere.limit=30")[0] == 0
    assert re.search(r"elsewhere: \d\d of 30 topics have a question of the training", caplog.text)


def test_a_training_goes_on_while_mlflow_is_silent_and_logs_its_charts_at_the_end(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from mlflow.exceptions import MlflowException
    from requests.exceptions import ConnectionError as Silence

    asked = []
    flush = track.Run.flush

    def silent_once(run: track.Run) -> None:
        asked.append(run)
        if len(asked) == 2:  # the first is of what is known before the training
            raise MlflowException("no answer") from Silence()
        flush(run)

    monkeypatch.setattr(of_dataset, "_FLUSH", 0.0)
    monkeypatch.setattr(track.Run, "flush", silent_once)
    code, record = train("leaks=drop")
    assert code == 0, record
    assert "MLflow does not answer (ConnectionError); the work goes on" in caplog.text
    reader = track.Reader(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    assert set(reader.history(str(record["run_id"]), "loss")) == {1, 2, 3}
    assert len(asked) == 4  # once silent, MLflow is asked again for the model and at the end


def test_a_training_that_is_stopped_at_its_registration_registers_when_it_is_started_again(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "register_model", stopped)
        with pytest.raises(KeyboardInterrupt):
            train("leaks=drop", "register=kept")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    assert client.search_registered_models() == []
    for version in (1, 2):  # a name that exists gets another version
        code, record = train("leaks=drop", "register=kept")
        assert code == 0, record
        assert client.get_latest_versions("kept")[0].version == version
    assert len(list((tmp_path / "s" / "trained").iterdir())) == 1


def test_a_folder_or_a_run_of_trainings_is_no_sweep_of_jobs(train: Train, tmp_path: Path) -> None:
    _, record = train("leaks=drop")
    uri = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"
    moved = tmp_path / "sweep" / "0"
    moved.parent.mkdir()
    (tmp_path / "out").rename(moved)
    for found in (lambda: records_in(moved.parent), lambda: members(str(moved.parent), uri, {})):
        with pytest.raises(DataError, match="is of a training, which has no outcomes"):
            found()
    run_id = str(record["run_id"])
    for found in (lambda: find(run_id, uri), lambda: members(run_id, uri, {})):
        with pytest.raises(DataError, match="is a training: give"):
            found()
    rerun = pytest.importorskip("ragauge.plugins.rerun.jobs")
    with pytest.raises(ConfigError, match=f"ragauge train rerun={run_id}"):
        rerun.logged_jobs(track.Reader(uri), track.Reader(uri).run(run_id), [], [])


def test_overrides_of_a_rerun_follow_the_logged_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ragauge.plugins.rerun")
    from ragauge.plugins.training.jobs import again

    config.register()
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    logged = ["trainer=encoder", "dataset=sample", "dataset.limit=30", "bootstrap=77", f"tracking.uri={uri}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", overrides=logged)
    with track.Tracker(uri, "trained").run("train", {}, {"role": "training"}) as run:
        (run.folder / "config").mkdir()
        OmegaConf.save(cfg, run.folder / "config" / "config.yaml")
    given = [f"tracking.uri={uri}", "seed=7", "dataset.limit=20"]
    with again.prepared([f"rerun={run.run_id}", *given], CONF) as made:
        assert (made[0], made[2:]) == ("--config-path", ["--config-name", "retrain", *given])
        with initialize_config_dir(made[1], version_base="1.3"):
            found = compose("retrain", overrides=made[4:])
    assert (found.seed, found.dataset.limit, found.bootstrap) == (7, 20, 77)
    assert f"rerun of training {run.run_id}" in capsys.readouterr().err


def test_the_other_keys_of_a_side_may_stand_for_keys_of_the_config(tmp_path: Path) -> None:
    config.register()
    given = ["trainer=encoder", "dataset=sample", "dataset.limit=40", "retriever=none", "chunker=none"]
    given += [f"store={tmp_path}", "leaks=drop", "bootstrap=12", "+validation.limit=${bootstrap}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        splits = load_splits(compose("train", overrides=given))
    assert len(splits.validation.frame("topics")) == 12
    assert len(splits.training.frame("topics")) == 40 - 12
    assert splits.values()["training_topics_left_out"] == 12


def test_a_model_that_retrieves_nothing_is_compared_with_nothing(small: SmallPipelines, tmp_path: Path) -> None:
    class Judge(CopyTrainer):
        def systems(self, components: Components, model: Path | None) -> dict[str, Components]:
            return {}

    job = small()
    sides = Splits(job, job, job, frozenset(), ())
    found = of_dataset._compared(OmegaConf.create({"bootstrap": 10, "seed": 0}), Judge(), sides, tmp_path)
    assert found.empty
    assert {"dataset", "topics"} <= set(found)
    assert of_dataset._told(found) == []


def test_a_sweep_of_trainings_ends_with_the_code_of_those_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*codes: int) -> int:
        for number, code in enumerate(codes):
            record = {
                "name": "train copy",
                "number": number,
                "exit_code": code,
                "overrides": [f"seed={number}"],
                "attempt": None,
                "choices": {},
                "metrics": {},
            }
            record |= {"status": "FAILED", "error": "no"} if code else {"status": "FINISHED"}
            write_json(tmp_path / "_".join(map(str, codes)) / str(number) / "job.json", record)
        return finish(tmp_path / "_".join(map(str, codes)))

    assert ended(0, 0, 0) == 0
    assert ended(2, 0, 0) == 2
    said = capsys.readouterr()
    assert "2 training(s) done, 1 failed" in said.out
    assert said.err == "FAILED train copy seed=0: no\n"
    assert ended(2, 1, 0) == 1


def test_a_training_of_an_earlier_attempt_at_its_sweep_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", overrides=["dataset=sample", f"store={tmp_path / 's'}", *COPY_TRAINER, "leaks=maybe"])
    for numbers in ((0, 1), (0,)):
        begin_attempt(tmp_path)
        for number in numbers:
            assert execute(cfg, JobFolder(tmp_path / str(number), tmp_path, number, {"trainer": "copy"}, ())) == 2
    assert finish(tmp_path) == 2
    assert "0 training(s) done, 1 failed" in capsys.readouterr().out


COPY = ["train", *COPY_TRAINER, "leaks=drop", "measures=[P@1]"]


@pytest.mark.slow
def test_two_processes_that_train_the_same_at_a_time_train_once(tmp_path: Path) -> None:
    arguments = [*COPY, "dataset.limit=30", "+trainer.seconds=5", "register=twice"]
    both = [Command(tmp_path, *arguments) for _ in range(2)]
    for done in (process.wait() for process in both):
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / ".ragauge" / "trained").iterdir())) == 1
    assert not list((tmp_path / ".ragauge" / "checkpoints").iterdir())


@pytest.mark.slow
def test_a_sweep_over_seeds_trains_each_and_a_key_in_clear_leaves_nothing(tmp_path: Path) -> None:
    seeds = ["train", "-m", *COPY[1:], "seed=1,2", "dataset.limit=30"]
    refused = Command(tmp_path, *seeds, "tracking.note='sk-planted-value-0123456789'").wait()
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: tracking.note"), refused.stderr
    assert list(tmp_path.iterdir()) == []
    done = Command(tmp_path, *seeds).wait()
    assert done.returncode == 0, done.stderr
    assert "2 training(s) done, 0 failed" in done.stdout
    assert len(list((tmp_path / ".ragauge" / "trained").iterdir())) == 2
    failed = Command(tmp_path, *seeds[:-2], "seed=3,4", "dataset.limit=1").wait()
    assert failed.returncode == 2
    assert failed.stderr.count("no topic is left to evaluate") >= 2


def topics(*rows: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["qid", "query"])


def test_leaks_are_questions_of_the_same_words_or_nearly() -> None:
    training = topics(("a", "Who wrote the Treatise on Light?"), ("b", "Where does the Rhine rise?"), ("c", "Who?"))
    validation = topics(
        ("x", "who wrote  the treatise on LIGHT?"),
        ("y", "Where does the river Rhine rise?"),
        ("z", "Who painted it?"),
    )
    found = leaked(training, validation)
    assert found[["training_qid", "validation_qid"]].to_numpy().tolist() == [["a", "x"], ["b", "y"]]
    assert found["similarity"].iloc[0] == 1 > found["similarity"].iloc[1] >= 0.8
    assert leaked(training, validation.iloc[:0]).empty


def test_leaks_agree_with_a_look_at_every_pair() -> None:
    generator = np.random.default_rng(3)
    words = ["river", "mountain", "who", "wrote", "treatise", "light", "where", "city"]
    sides = [
        topics(*((f"{side}{i}", " ".join(generator.choice(words, generator.integers(2, 5)))) for i in range(40)))
        for side in "tv"
    ]

    def grams(text: str) -> set[str]:
        return {f" {w} "[i : i + 5] for w in text.split() for i in range(max(1, len(w) - 2))}

    expected = {
        (a.qid, b.qid)
        for a in sides[0].itertuples()
        for b in sides[1].itertuples()
        if len(grams(a.query) & grams(b.query)) >= 0.8 * len(grams(a.query) | grams(b.query)) - 1e-9
    }
    found = leaked(*sides)
    assert set(found[["training_qid", "validation_qid"]].itertuples(index=False, name=None)) == expected
    assert expected


def test_documents_in_both_are_found_by_their_number() -> None:
    ours = pd.DataFrame({"qid": ["a", "b"], "docno": ["d1", None]})
    theirs = pd.DataFrame({"qid": ["x", "x", "y", "z"], "docno": ["d2", "d1", None, "d3"]})
    assert sharing_documents(ours, theirs) == {"x"}


def test_a_split_holds_every_topic_once_and_does_not_move_when_topics_come() -> None:
    source = SampleDataset()
    sides = [SplitDataset(source, side, 0.3, 7).load() for side in ("training", "validation")]
    whole = source.load()
    assert sorted([*sides[0].topics["qid"], *sides[1].topics["qid"]]) == sorted(whole.topics["qid"])
    assert 20 <= len(sides[1].topics) <= 52
    assert set(sides[1].evidence["qid"]) <= set(sides[1].topics["qid"])
    few = SplitDataset(SampleDataset(limit=50), "validation", 0.3, 7).load().topics["qid"]
    assert set(few) <= set(sides[1].topics["qid"])
    left = TopicsLeftOut(source, tuple(sides[1].topics["qid"])).load()
    assert left.topics["qid"].tolist() == sides[0].topics["qid"].tolist()


def test_gains_are_paired_by_topic_and_stand_apart_from_shared_documents() -> None:
    before = pd.DataFrame(
        {"system": "alone", "qid": ["a", "b", "c", "d"], "measure": "R@5", "value": [0.0, 0.5, 1.0, 0.5]}
    )
    after = before.assign(value=[1.0, 0.5, 0.5, 0.5])
    table = gains(before, after, "validation", {"a"})
    row, apart = table.to_dict("records")
    assert (row["before"], row["after"], row["difference"], row["n"]) == (0.5, 0.625, 0.125, 4)
    assert row["lo"] <= 0.125 <= row["hi"]
    assert row["p"] == 1  # all 4 sign patterns of (1, -0.5) are as far from 0 or further
    assert (apart["topics"], apart["n"], apart["difference"]) == ("apart", 3, pytest.approx(-1 / 6))
    metrics = as_metrics(table, "elsewhere_")
    assert metrics["elsewhere_alone_r_at_5_gain"] == 0.125
    assert set(metrics) == {
        f"elsewhere_alone_r_at_5_{end}" for end in ("before", "after", "gain", "gain_lo", "gain_hi")
    }


def test_a_training_is_composed_without_a_word_on_its_trainer() -> None:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        assert compose("train").trainer._target_.endswith(".Encoder")
