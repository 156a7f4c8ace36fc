"""A training around its trainer: splits, leaks, before and after, the MLflow run, once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from copy_trainer import CopyTrainer
from ragauge import track
from ragauge.contract.training import Trainer
from ragauge.datasets import SampleDataset, SplitDataset, TopicsLeftOut
from ragauge.experiment import config
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.training.comparison import as_metrics, gains
from ragauge.experiment.training.job import execute
from ragauge.experiment.training.leaks import leaked, sharing_documents

CONF = Path(__file__).resolve().parents[2] / "conf"
Train = Callable[..., tuple[int, dict[str, object]]]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Runs a training with the trainer that copies MiniLM; its exit code and its record."""
    import json

    def run(*overrides: str) -> tuple[int, dict[str, object]]:
        config.register()
        folder = JobFolder(tmp_path / "out", None, 0, {"trainer": "copy"}, overrides)
        given = ["dataset=sample", "dataset.limit=30", "retriever=bm25", f"store={tmp_path / 's'}"]
        given += [f"tracking.uri=sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}", "measures=[P@1,R@5]"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose(
                "train", overrides=[*given, "trainer._target_=copy_trainer.CopyTrainer", *overrides]
            )
        code = execute(cfg, folder)
        return code, json.loads((tmp_path / "out" / "job.json").read_text(encoding="utf-8"))

    return run


def test_the_trainer_of_the_tests_satisfies_the_protocol() -> None:
    trainer: Trainer = CopyTrainer()
    assert trainer.kind == "encoder"


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
    assert (
        metrics["training_topics"] + metrics["training_topics_left_out"] + metrics["validation_topics"] == 30
    )
    mined = reader.table(run.run_id, "negatives.json")
    assert len(mined) == metrics["training_topics"] == metrics["examples"]
    card = reader.text(run.run_id, "README.md")
    assert card.startswith("# copied\n")
    assert "| validation | all | alone | P@1 |" in card
    folder = track.model_folder(reader.uri, "models:/copied/1", "embedder.model")
    assert (folder / "modules.json").is_file()


def test_a_training_that_was_done_is_not_done_again(train: Train, tmp_path: Path) -> None:
    first = train("leaks=drop")[1]
    second = train("leaks=drop")[1]
    assert first["model_digest"] == second["model_digest"]
    assert len(list((tmp_path / "s" / "trained").iterdir())) == 1
    assert train("leaks=drop", "seed=1")[0] == 0
    assert len(list((tmp_path / "s" / "trained").iterdir())) == 2


def test_a_training_that_fails_leaves_its_checkpoint_and_registers_nothing(
    train: Train, tmp_path: Path
) -> None:
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
        ("dataset@elsewhere=hotpotqa", "elsewhere.path"),
    ],
)
def test_bad_input_is_one_line_before_any_work(
    train: Train, tmp_path: Path, override: str, told: str
) -> None:
    code, record = train(override)
    assert code == 2
    assert told.replace("elsewhere.path", "dataset.path") in str(record["error"])
    assert not (tmp_path / "s" / "trained").exists()


def test_validation_questions_in_the_training_are_an_error_that_names_them(train: Train) -> None:
    code, record = train("++validation.limit=2")  # the first two of the training's own topics
    assert code == 2
    assert str(record["error"]).startswith(
        "2 of 2 validation questions stand in the training, word for word or"
    )
    code, record = train("++validation.limit=2", "leaks=drop")
    assert code == 0
    metrics = record["metrics"]
    assert isinstance(metrics, dict)
    assert (metrics["training_topics"], metrics["training_topics_left_out"]) == (28, 2)


def topics(*rows: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["qid", "query"])


def test_leaks_are_questions_of_the_same_words_or_nearly() -> None:
    training = topics(
        ("a", "Who wrote the Treatise on Light?"), ("b", "Where does the Rhine rise?"), ("c", "Who?")
    )
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
        topics(
            *((f"{side}{i}", " ".join(generator.choice(words, generator.integers(2, 5)))) for i in range(40))
        )
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
    table = gains(before, after, "validation", {"a"}, n_boot=200)
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
