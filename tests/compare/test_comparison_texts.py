"""What a comparison picks out and prints, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.commands.compare import main
from ragauge.show.tables import clean, escape_latex, fit


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
