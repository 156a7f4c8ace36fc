"""`ragauge train` from any folder."""

from __future__ import annotations

from pathlib import Path

from processes import Command


def test_a_training_is_composed_in_another_folder(tmp_path: Path) -> None:
    done = Command(tmp_path, "train", "--cfg", "job", "trainer=predictor").wait()
    assert done.returncode == 0, done.stderr
    assert "ragauge.plugins.training.trainers.predictor.PredictorTrainer" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_seed_that_nothing_can_be_drawn_by_is_refused_before_any_work(tmp_path: Path) -> None:
    given = ("trainer=encoder", "dataset=sample", "seed=-1", f"store={tmp_path / 'store'}")
    done = Command(tmp_path, "train", *given).wait()
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == "train encoder: seed=-1: allowed are integers from 0 to 4,294,967,295"
    assert not (tmp_path / "store").exists()
