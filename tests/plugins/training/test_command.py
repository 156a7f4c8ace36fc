"""`ragauge train` from any folder."""

from __future__ import annotations

from pathlib import Path

from processes import Command


def test_a_training_is_composed_in_another_folder(tmp_path: Path) -> None:
    done = Command(tmp_path, "train", "--cfg", "job", "trainer=predictor").wait()
    assert done.returncode == 0, done.stderr
    assert "ragauge.plugins.training.trainers.predictor.PredictorTrainer" in done.stdout
    assert list(tmp_path.iterdir()) == []
