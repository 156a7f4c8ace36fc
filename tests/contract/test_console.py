"""Tables on the console: plain and whole in a file, folded on a narrow terminal."""

from __future__ import annotations

import io
import os
import pty
import sys
import termios

import pytest

from ragauge.contract import visible as console

ROWS = [("stage", "size"), ("chunks", "1.2 MB"), ("run", "9 B")]


def test_columns_worked_out_by_hand() -> None:
    assert console.table(ROWS, right=(1,)) == "stage     size\nchunks  1.2 MB\nrun        9 B"
    assert console.table(ROWS, indent="  ", gap=1) == "  stage  size\n  chunks 1.2 MB\n  run    9 B"
    assert console.table([]) == ""


def test_a_log_file_gets_whole_lines_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "40"), ("FORCE_COLOR", "1"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    text = console.table([("long", "x" * 300), ("words", "a b " * 100)])
    assert [len(line) for line in text.splitlines()] == [307, 406]
    assert "\x1b" not in text


def test_cells_are_no_markup() -> None:
    cells = ("[red]x[/red]", ":smile:", "/tmp/[a]")
    assert console.table([cells]) == "[red]x[/red]  :smile:  /tmp/[a]"


def test_a_narrow_terminal_folds_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_width", lambda: 30)
    text = console.table([("name", "word " * 20)])
    assert max(map(len, text.splitlines())) <= 30
    assert text.split() == ["name", *["word"] * 20]


def test_the_terminal_s_width_is_asked_for_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    try:
        with os.fdopen(theirs, "w") as terminal:
            monkeypatch.setattr("sys.stdout", terminal)
            monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((77, 20)))
            assert console._width() == 77
    finally:
        os.close(ours)
    monkeypatch.undo()
    with open(os.devnull, "w") as file:
        monkeypatch.setattr("sys.stdout", file)
        assert console._width() > 10_000


BOARD = "\nLeaderboard at N = 100\nsystem score\nbm25   0.812* 0.77-0.85\nsim    0.7"


def test_a_terminal_of_80_columns_gets_a_leaderboard_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 80))
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        text, width = console.coloured(BOARD), console._width()
        monkeypatch.setenv("NO_COLOR", "1")
        plain = console.coloured(BOARD)
        monkeypatch.undo()
    os.close(reader)
    assert text.splitlines() == [
        "",
        "\x1b[1mLeaderboard at N = 100\x1b[0m",
        "system score",
        "bm25   \x1b[32m0.812*\x1b[0m 0.77-0.85",
        "sim    0.7",
    ]
    assert (plain, width) == (BOARD, 80)


def test_a_file_gets_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert console.coloured(BOARD) == BOARD


def test_in_a_notebook_a_table_is_text_and_nothing_is_displayed(monkeypatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert console.table([["a", "b"], ["cc", "d"]]) == "a   b\ncc  d"
