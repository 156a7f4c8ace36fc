"""`ragauge sample`, and the file that llm.sample takes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.estimate.predictor import fit_predictor
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


def test_each_stratum_draws_the_first_topics_in_the_order_of_the_seed(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 200 topics 40 cannot be answered: they are a stratum of their own, with their part of the sample."""
    jobs = []
    for job in ("0", "1"):
        file = sweep / job / "outcomes.parquet"
        rows = pd.read_parquet(file)
        marked = rows.index >= 160
        jobs.append(rows.assign(unanswerable=marked, ir_score=rows["ir_score"].mask(marked)))
        jobs[-1].to_parquet(file)
    assert main([str(sweep), "--n", "100", "--seed", "3", "--out", str(sweep / "sample.csv")]) == 0
    drawn = pd.read_csv(sweep / "sample.csv").set_index("qid")
    said = capsys.readouterr().out.splitlines()
    assert [len(drawn[drawn["stratum"] == s]) for s in range(4)] == [54, 53, 53, 40]
    assert set(drawn.index[drawn["stratum"] == 3]) == {f"q{i}" for i in range(160, 200)}
    assert (drawn["answered"].sum(), drawn.loc[drawn["stratum"] == 3, "answered"].sum()) == (100, 20)
    for stratum, part in drawn.groupby("stratum"):
        order = sorted(part.index, key=lambda qid: hashlib.blake2b(f"3\0{qid}".encode(), digest_size=16).hexdigest())
        assert part.loc[order[: part["answered"].sum()], "answered"].all()
        counts = f"stratum {stratum}: {part['answered'].sum()} of {len(part)} topics"
        assert f"{counts}; P(right) {part['p_right'].mean():.2f} in the mean" in said
    # Both jobs count in the probability of a topic.
    both = (jobs[0]["ir_score"] + jobs[1]["ir_score"])[:160]
    assert drawn["p_right"].iloc[:160].corr(both.set_axis(drawn.index[:160]), method="spearman") > 0.97


def test_a_logged_predictor_is_used_in_place_of_the_verdicts(sweep: Path) -> None:
    rows = pd.concat([pd.read_parquet(sweep / job / "outcomes.parquet") for job in "01"], ignore_index=True)
    other = fit_predictor(rows.assign(ir_score=1 - rows["ir_score"]))  # right where the score is low
    example = rows[["ir_score"]].iloc[:3].reset_index(drop=True)
    track.save_predictor(sweep / "predictor", other.model, example, {})
    arguments = ["--n", "80", "--predictor", str(sweep / "predictor"), "--out", str(sweep / "sample.csv")]
    assert main([str(sweep), *arguments, "--tracking-uri", f"sqlite:///{sweep / 'mlflow.db'}"]) == 0
    drawn = pd.read_csv(sweep / "sample.csv").set_index("qid")["p_right"]
    assert drawn.corr(rows.groupby("qid")["ir_score"].mean(), method="spearman") < -0.9


def test_verdicts_on_one_topic_fit_no_predictor(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for job in ("0", "1"):
        file = sweep / job / "outcomes.parquet"
        rows = pd.read_parquet(file)
        rows.assign(label=rows["label"].where(rows["qid"] == "q007")).to_parquet(file)
    assert main([str(sweep), "--n", "80"]) == 2
    assert "--predictor: the folder has no verdicts" in capsys.readouterr().err
