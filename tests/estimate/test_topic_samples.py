"""Which topics a job judges or answers: a draw among those that can be, or those of a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.estimate.topic_samples import Listed, Sample

QIDS = pd.Series([f"q{i}" for i in range(6)])


def test_a_draw_is_among_the_topics_that_can_be_judged() -> None:
    for seed in range(4):
        chosen = Sample(2, seed=seed).chosen(QIDS, ["q0", "q3", "other"])
        assert chosen["qid"].tolist() == ["q1", "q2", "q4", "q5"]
        assert (chosen["judged"].sum(), chosen["stratum"].sum()) == (2, 0)
    drawn = {seed: tuple(Sample(2, seed=seed).chosen(QIDS, [])["judged"]) for seed in range(6)}
    assert len(set(drawn.values())) > 1
    # Where no topic can be judged, all are: the judge says of each why it cannot.
    assert Sample(6).chosen(QIDS, QIDS.tolist())["qid"].tolist() == QIDS.tolist()
    for wrong in (1, True, 2.5):
        with pytest.raises(ConfigError, match=rf"llm\.sample={wrong}: allowed are integers of at least 2"):
            Sample(wrong, of="llm")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"judge\.sample_design=best: allowed are uniform, neyman"):
        Sample(3, "best")


def test_a_file_says_which_topics_are_answered_and_by_which_strata_they_were_drawn(tmp_path: Path) -> None:
    def listed(text: str) -> Listed:
        (tmp_path / "topics.csv").write_text(text, encoding="utf-8")
        return Listed.of_file(str(tmp_path / "topics.csv"))

    rows = ["q5,1,1", "q4,1,1", "q3,0,1", "q2,1,0", "q1,1,0", "'=q0,0,0", "'=more,1,0"]
    qids = pd.Series(["=q0", "q1", "q2", "q3", "q4"])
    given = listed("\n".join(["qid,answered,stratum", *rows]))
    assert (given.n, given.of) == (5, "llm")
    found = given.chosen(qids, ["q2"])
    assert found.to_numpy().tolist() == [["=q0", 0, False], ["q1", 0, True], ["q3", 1, False], ["q4", 1, True]]
    alone = listed("\n".join(["qid,answered", *(row.rpartition(",")[0] for row in rows)])).chosen(qids, [])
    assert alone["stratum"].tolist() == [0] * 5
    with pytest.raises(ConfigError, match="no row of qid='q7'"):
        given.chosen(pd.Series(["q1", "q7"]), [])
    # A stratum of one topic takes that one.
    assert listed("qid,answered,stratum\nq1,1,0\nq2,1,0\nq3,1,1\n").n == 3
    for text, told in (
        ("qid,answered\nq1,2\n", "answered of qid='q1' is not 0 or 1"),
        ("qid,answered,stratum\nq1,1,a\n", "stratum of qid='q1' is not an integer of at least 0"),
        ("qid,answered\nq1,1\nq1,1\n", "allowed are the columns qid"),
        ("qid,judged\nq1,1\n", "allowed are the columns qid"),
        ("qid,answered\nq1,1\nq2,0\n", "stratum False names 1 of 2 topics; it takes at least 2"),
        ("", "no CSV file that can be read"),
    ):
        with pytest.raises(ConfigError, match=told):
            listed(text)
