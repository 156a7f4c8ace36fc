"""Whether two runs were scored by one measure: what changes scores, and what does not."""

from __future__ import annotations

import pytest

from ragauge.compare._sources import check_alike
from ragauge.contract.errors import DataError
from ragauge.track import LoggedRun


def logged(number: int, **params: str) -> LoggedRun:
    of_measure = {f"measure.{key}": value for key, value in params.items()}
    tags = {"measure": "substring", "dataset": "sample", "dataset_digest": "ab"}
    return LoggedRun(f"run{number}", "name", "FINISHED", "1", "sample", 0.0, of_measure, tags, {})


def test_runs_whose_scores_mean_the_same_compare() -> None:
    one, other = logged(1, fold='["case", "nfkc"]'), logged(2, fold='["nfkc", "case"]', threads="2")
    check_alike([one, other], across_datasets=False)


@pytest.mark.parametrize("other", [{"correct": "floor"}, {"fold": '["case"]'}])
def test_runs_with_another_correction_or_fold_do_not_compare(other: dict[str, str]) -> None:
    with pytest.raises(DataError, match="scored by different measures"):
        check_alike([logged(1), logged(2, **other)], across_datasets=False)
