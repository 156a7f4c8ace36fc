"""`ragauge sample`, and the file that llm.sample takes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.estimate.predictor import fit_predictor
from ragauge.estimate.topic_samples import Listed
from ragauge.plugins.sampling.command import main


def swept(folder: Path, *change: str) -> list[pd.DataFrame]:
    """Two jobs with verdicts on 200 topics, right where the score is high; the last 40 cannot be answered.

    change: which columns no job has, or "answerable" where all can be answered.
    """
    rng, jobs = np.random.default_rng(1), []
    for job in ("0", "1"):
        score = rng.random(200)
        label = pd.array(np.where(rng.random(200) < score, 5, 1), "Int8")
        rows = pd.DataFrame({"qid": [f"q{i:03d}" for i in range(200)], "ir_score": score, "label": label})
        if "answerable" not in change:
            marked = rows.index >= 160
            rows = rows.assign(unanswerable=marked, ir_score=rows["ir_score"].mask(marked))
        jobs.append(rows.drop(columns=[name for name in change if name in rows]))
        (folder / job).mkdir()
        jobs[-1].to_parquet(folder / job / "outcomes.parquet")
    return jobs


def in_order(qids: pd.Index, seed: int) -> list[str]:
    return sorted(qids, key=lambda qid: hashlib.blake2b(f"{seed}\0{qid}".encode(), digest_size=16).hexdigest())


@pytest.mark.parametrize(("change", "sizes", "n"), [((), [54, 53, 53, 40], 100), (("answerable",), [67, 67, 66], 80)])
def test_each_stratum_draws_the_first_topics_in_the_order_of_the_seed(
    change: tuple[str, ...], sizes: list[int], n: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics that cannot be answered are a stratum of their own, with their part of the sample."""
    jobs = swept(tmp_path, *change)
    files = [tmp_path / "small.csv", tmp_path / "large.csv"]
    for file, of in zip(files, (n, n + 40), strict=True):
        assert main([str(tmp_path), "--n", str(of), "--seed", "3", "--out", str(file)]) == 0
    small, large = (pd.read_csv(file).set_index("qid") for file in files)
    at_risk = [rows[~rows["unanswerable"]] if "unanswerable" in rows else rows for rows in jobs]
    model = fit_predictor(pd.concat(at_risk, ignore_index=True)).model
    right = pd.concat([pd.Series(model.predict_proba(rows)[:, -1], rows["qid"]) for rows in at_risk])
    spread, right = ((of.groupby(level=0)).mean() for of in (right * (1 - right), right))
    assert small.loc[right.index, "p_right"].tolist() == pytest.approx(right.round(4).tolist(), abs=1e-9)
    # The lowest probabilities are the first stratum.
    ranked = sorted(right.index, key=lambda qid: right[qid])
    starts = np.cumsum([0, *sizes])
    said = capsys.readouterr().out.splitlines()
    assert said[len(sizes)] == f"{files[0]}: give llm.sample={files[0]}"
    for stratum, size in enumerate(sizes):
        part = small[small["stratum"] == stratum]
        expected = ranked[starts[stratum] : starts[stratum + 1]] if stratum < 3 else [f"q{i}" for i in range(160, 200)]
        assert set(part.index) == set(expected)
        assert len(part) == size
        first = in_order(part.index, 3)[: part["answered"].sum()]
        assert set(part.index[part["answered"] == 1]) == set(first)
        mean = part["p_right"].mean()
        assert said[stratum] == f"stratum {stratum}: {len(first)} of {size} topics; P(right) {mean:.2f} in the mean"
    counts = small.groupby("stratum")["answered"].sum()
    assert (counts.sum(), counts.get(3, 20)) == (n, 20)
    # Of the others in proportion to the topics of a stratum and the spread that is left in it.
    left = [
        size * np.sqrt(spread[ranked[start : start + size]].mean())
        for size, start in zip(sizes[:3], starts[:3], strict=True)
    ]
    assert counts[:3].tolist() == pytest.approx(counts[:3].sum() * np.array(left) / sum(left), abs=1)
    assert (small["answered"] <= large["answered"].reindex(small.index)).all()
    drawn = Listed.of_file(str(files[0]))
    assert drawn.n == n
    chosen = drawn.chosen(pd.Series(small.index[::-1]), ["q000"]).set_index("qid")
    assert chosen.index.tolist() == [qid for qid in small.index[::-1] if qid != "q000"]
    assert (chosen["judged"] == small["answered"].eq(1)[chosen.index]).all()
    assert (chosen["stratum"] == small["stratum"][chosen.index]).all()


@pytest.mark.parametrize("change", [(), ("answerable",)])
def test_a_logged_predictor_is_used_in_place_of_the_verdicts(change: tuple[str, ...], tmp_path: Path) -> None:
    """Also where no topic can be answered."""
    rows = pd.concat(swept(tmp_path, "label", *change), ignore_index=True)
    scores = np.linspace(0, 1, 50)
    other = fit_predictor(pd.DataFrame({
        "qid": [f"t{i}" for i in range(50)], "ir_score": scores, "label": np.where(scores < 0.5, 5, 1),
    }))  # fmt: skip
    track.save_predictor(tmp_path / "predictor", other.model, pd.DataFrame({"ir_score": scores[:3]}), {})
    if not change:
        for job in ("0", "1"):
            file = tmp_path / job / "outcomes.parquet"
            pd.read_parquet(file).assign(unanswerable=True).to_parquet(file)
    arguments = ["--n", "80", "--predictor", str(tmp_path / "predictor"), "--out", str(tmp_path / "sample.csv")]
    assert main([str(tmp_path), *arguments, "--tracking-uri", f"sqlite:///{tmp_path / 'mlflow.db'}"]) == 0
    drawn = pd.read_csv(tmp_path / "sample.csv").set_index("qid")
    assert drawn["answered"].sum() == 80
    lowest = drawn[drawn["stratum"] == 0]
    assert set(in_order(lowest.index, 0)[: lowest["answered"].sum()]) == set(lowest.index[lowest["answered"] == 1])
    assert drawn["p_right"].corr(rows.groupby("qid")["ir_score"].mean(), method="spearman") < -0.9


def test_a_folder_whose_verdicts_fit_no_predictor_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = swept(tmp_path)
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "--n" in capsys.readouterr().err
    assert main([str(tmp_path / "2"), "--n", "80"]) == 2
    assert "no outcomes.parquet in it" in capsys.readouterr().err
    one = [rows.assign(label=rows["label"].where(rows["qid"] == "q007")) for rows in jobs]
    for changed in (one, [rows.drop(columns="label") for rows in jobs]):
        for job, rows in enumerate(changed):
            rows.to_parquet(tmp_path / str(job) / "outcomes.parquet")
        assert main([str(tmp_path), "--n", "80"]) == 2
        assert "--predictor: the folder has no verdicts" in capsys.readouterr().err
    two = [rows.assign(label=rows["label"].where(rows["qid"].isin(["q007", "q003"]))) for rows in jobs]
    for job, rows in enumerate(two):
        rows.to_parquet(tmp_path / str(job) / "outcomes.parquet")
    assert main([str(tmp_path), "--n", "80", "--out", str(tmp_path / "sample.csv")]) == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("qid,answered\na,1\na,0\n", "allowed are the columns qid"),
        ("qid,chosen\na,1\n", "allowed are the columns qid"),
        ("qid,answered\na,1\nb,2\n", "answered of qid='b' is not 0 or 1"),
        ("qid,answered,stratum\na,1,0\nb,1,x\n", "stratum of qid='b' is not an integer of at least 0"),
        ("qid,answered,stratum\na,1,0\nb,1,0\nc,1,1\nd,0,1\n", "stratum 1 names 1 of 2 topics"),
        ("qid,answered\na,1\nb,1\n", "no row of qid='d'"),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_line(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "sample.csv").write_text(rows)
    with pytest.raises(ConfigError, match=message):
        Listed.of_file(str(tmp_path / "sample.csv")).chosen(pd.Series(["a", "d"]), [])
    with pytest.raises(ConfigError, match="allowed are integers and files"):
        Listed.of_file(str(tmp_path / "none.csv"))


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    about, *options = re.split(r"\n  (?=-|folder)", capsys.readouterr().out)
    assert "Draws topics by strata of P(right)" in about
    assert len(options) == 9
    assert all(re.search(r"\S\s{2,}\S", option) for option in options)
