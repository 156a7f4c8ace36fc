"""Tables on the console: plain and whole in a file, folded on a narrow terminal."""

from __future__ import annotations

import os

import pytest

from ragauge.contract import console

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


def test_in_a_notebook_a_table_is_text_and_nothing_is_displayed(monkeypatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert console.table([["a", "b"], ["cc", "d"]]) == "a   b\ncc  d"
