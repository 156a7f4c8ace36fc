"""What a comparison picks out and prints, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ragauge import compare as comparing
from ragauge.commands.compare import main
from ragauge.compare import most_different
from ragauge.compare._sources import short, some
from ragauge.show.tables import clean, escape_latex, fit


def comparison_of(rows: list[tuple[str, str, float, int | None]]) -> comparing.Comparison:
    """A comparison of the runs a (the baseline), b, ... with nothing but outcomes: run, qid, score, class."""
    frame = pd.DataFrame(rows, columns=["run_id", "qid", "ir_score", "label"]).astype({"label": "Int8"})
    names = {run: run for run in frame["run_id"].unique()}
    return comparing.Comparison(frame.assign(query="?", answer="!"), names, "a", [], n_tokens=1, n_boot=0, seed=0)


def test_the_largest_difference_in_score_comes_first_and_a_topic_once() -> None:
    base = [("a", f"q{i}", 0.5, None) for i in range(4)]
    b = [("b", "q0", 0.6, None), ("b", "q1", 0.5, None), ("b", "q2", 0.0, None), ("b", "q9", 1.0, None)]
    c = [("c", "q0", 0.1, None), ("c", "q1", 0.5, None), ("c", "q2", 0.9, None), ("c", "q3", 0.9, None)]
    rows, count = most_different(comparison_of([*base, *b, *c]), "ir_score", 2)
    assert count == 3
    assert rows[["qid", "run_id", "ir_score", "ir_score_base"]].to_numpy().tolist() == [
        ["q2", "b", 0.0, 0.5], ["q0", "c", 0.1, 0.5],
    ]  # fmt: skip


def test_right_against_a_hallucination_comes_before_all_other_changes_of_class() -> None:
    classes = {
        "q0": (5, 5),
        "q1": (1, 3),
        "q2": (2, 1),
        "q3": (5, 1),
        "q4": (4, 5),
        "q5": (None, 5),
        "q6": (2, 4),
    }
    rows = [(run, qid, 0.5, pair[i]) for qid, pair in classes.items() for i, run in enumerate("ab")]
    found, count = most_different(comparison_of(rows), "class", 10)
    assert found["qid"].tolist() == ["q4", "q3", "q2", "q1", "q6"]
    assert count == 5


def test_nothing_of_a_text_does_anything_to_the_terminal() -> None:
    assert clean("a\n\tb \x1b[31mred\x1b[0m") == "a b ␛[31mred␛[0m"
    assert clean("x\x1b]0;title\x1b\\y\x9b2Jz\x07") == "x␛]0;title␛\\y⟦U+009B⟧2Jz␇"
    assert clean("a \ud83d b") == "a ⟦U+D83D⟧ b"


def test_texts_are_cut_to_columns_of_a_terminal() -> None:
    assert [fit("abcdef", width) for width in (6, 5, 3, 2, 1)] == ["abcdef", "abcd…", "ab…", "a…", "a…"]
    # Each of these takes two columns.
    assert [fit("東京都庁", width) for width in (8, 7, 6, 5, 3)] == [
        "東京都庁",
        "東京都…",
        "東京…",
        "東京…",
        "東…",
    ]
    assert short("a" * 24) == "a" * 24
    assert short("a" * 25) == "a" * 23 + "…"
    assert short(" a\n\tb ") == "a b"
    assert some("abcde") == "a, b, c, d, e"
    assert some("abcdefg") == "a, b, c, d, e and 2 more"


def test_latex_escapes_by_hand() -> None:
    assert escape_latex(clean("\x01 \x1b \x7f")) == "{[}U+0001] {[}U+001B] {[}U+007F]"
    assert escape_latex("a_b & 50% {x} #1 $ ~ ^ \\ |") == (
        r"a\_b \& 50\% \{x\} \#1 \$ \textasciitilde{} \textasciicircum{} \textbackslash{} \textbar{}"
    )


def test_without_a_database_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["abc", "def"]) == 2
    assert "no MLflow database at" in capsys.readouterr().err
