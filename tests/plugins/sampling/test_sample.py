"""`ragauge sample`, and the file that llm.sample takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.estimate.topic_samples import Listed
from ragauge.plugins.sampling.command import main


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two jobs with verdicts on 200 topics: right where the score is high."""
    rng = np.random.default_rng(1)
    for job in ("0", "1"):
        score = rng.random(200)
        label = np.where(rng.random(200) < score, 5, 1)
        rows = pd.DataFrame({"qid": [f"q{i:03d}" for i in range(200)], "ir_score": score})
        (tmp_path / job).mkdir()
        rows.assign(label=pd.array(label, "Int8")).to_parquet(tmp_path / job / "outcomes.parquet")
    return tmp_path


def test_more_topics_are_drawn_where_right_is_uncertain_and_samples_nest(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [sweep / f"{n}.csv" for n in (80, 120)]
    for file in files:
        assert main([str(sweep), "--n", file.stem, "--out", str(file)]) == 0
    assert f"give llm.sample={files[0]}" in capsys.readouterr().out
    small, large = (pd.read_csv(file) for file in files)
    by = small.groupby("stratum")
    assert by["answered"].sum().tolist()[1] == by["answered"].sum().max()
    assert by["p_right"].mean().is_monotonic_increasing
    assert (small["answered"] <= large["answered"]).all()
    drawn = Listed.of_file(str(files[0]))
    assert drawn.n == 80
    chosen = drawn.chosen(small["qid"].sample(frac=1, random_state=2), ["q000"])
    assert len(chosen) == 199
    pd.testing.assert_frame_equal(
        chosen.sort_values("qid", ignore_index=True),
        small.loc[1:, ["qid", "stratum", "answered"]].rename(columns={"answered": "judged"}).astype({"judged": bool})
        .reset_index(drop=True), check_dtype=False,
    )  # fmt: skip


def test_a_folder_without_verdicts_needs_a_predictor(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for job in ("0", "1"):
        pd.read_parquet(sweep / job / "outcomes.parquet").drop(columns="label").to_parquet(
            sweep / job / "outcomes.parquet"
        )
    assert main([str(sweep), "--n", "80"]) == 2
    assert "--predictor: the folder has no verdicts" in capsys.readouterr().err
    assert main([str(sweep / "2"), "--n", "80"]) == 2
    assert "no outcomes.parquet in it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("qid,answered\na,1\na,0\n", "allowed are the columns qid"),
        ("qid,chosen\na,1\n", "allowed are the columns qid"),
        ("qid,answered\na,1\nb,2\n", "answered of qid='b' is not 0 or 1"),
        ("qid,answered,stratum\na,1,0\nb,1,x\n", "stratum of qid='b' is not an integer of at least 0"),
        ("qid,answered,stratum\na,1,0\nb,1,0\nc,1,1\nd,0,1\n", "stratum 1 names 1 of 2 topics"),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_line(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "sample.csv").write_text(rows)
    with pytest.raises(ConfigError, match=message):
        Listed.of_file(str(tmp_path / "sample.csv"))
    with pytest.raises(ConfigError, match="allowed are integers and files"):
        Listed.of_file(str(tmp_path / "none.csv"))


def test_a_topic_that_the_file_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "sample.csv").write_text("qid,answered\na,1\nb,1\nc,0\n")
    drawn = Listed.of_file(str(tmp_path / "sample.csv"))
    assert drawn.chosen(pd.Series(["a", "b", "c"]), [])["judged"].tolist() == [True, True, False]
    with pytest.raises(ConfigError, match="no row of qid='d'"):
        drawn.chosen(pd.Series(["a", "d"]), [])


def test_unanswerable_topics_are_a_stratum_of_their_own_with_their_part_of_the_sample(sweep: Path) -> None:
    for job in ("0", "1"):
        file = sweep / job / "outcomes.parquet"
        rows = pd.read_parquet(file)
        marked = rows.index >= 160
        rows.assign(unanswerable=marked, ir_score=rows["ir_score"].mask(marked)).to_parquet(file)
    assert main([str(sweep), "--n", "100", "--out", str(sweep / "sample.csv")]) == 0
    drawn = pd.read_csv(sweep / "sample.csv").set_index("qid")
    apart = drawn.index >= "q160"
    assert set(drawn.loc[apart, "stratum"]) == {3}
    assert set(drawn.loc[~apart, "stratum"]) == {0, 1, 2}
    assert (drawn["answered"].sum(), drawn.loc[apart, "answered"].sum()) == (100, 20)
