"""Texts that others wrote: shown on a terminal, a page and in a spreadsheet, never obeyed."""

from __future__ import annotations

import csv
import io
import logging
from pathlib import Path

import pandas as pd
import pytest
import yaml

from ragauge.contract.visible import Formatter, csv_text, is_blank, spreadsheet_cell, visible
from ragauge.findings.terminal import leaderboard_text

EVIL = "a\x00b\x1b[2Jc\x7fd\x9be\u202ef\u2066g"
SHOWN = "a␀b␛[2Jc␡d⟦U+009B⟧e⟦U+202E⟧f⟦U+2066⟧g"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, SHOWN),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("100 %\rdone", "100 %␍done"),
        ("Zürich – 東京 👩‍🔬 שלום", "Zürich – 東京 👩‍🔬 שלום"),
        ("a \ud83d b", "a ⟦U+D83D⟧ b"),
    ],
)
def test_controls_show_as_symbols_and_letters_stay(text: str, shown: str) -> None:
    assert visible(text) == shown
    visible(text).encode("utf-8")


def test_a_cell_of_a_table_is_one_line() -> None:
    assert visible("  a\n\n b\u2028c\td\x0be\x85f ", one_line=True) == "a b c d e f"
    assert visible(f"{EVIL}\n", one_line=True) == SHOWN


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("＝1+1", "'＝1+1"),
        ("-0.12", "-0.12"),
        ("+1e-5", "+1e-5"),
        ("-", "'-"),
        ("-1-1", "'-1-1"),
        ("a=b", "a=b"),
        ("", ""),
        (-0.12, -0.12),
        (None, None),
    ],
)  # fmt: skip
def test_a_cell_that_begins_a_formula_is_quoted_and_numbers_stay_numbers(cell, safe) -> None:
    assert spreadsheet_cell(cell) == safe


def test_csv_for_people_holds_no_formula_and_its_numbers_to_the_last_bit() -> None:
    frame = pd.DataFrame(
        {
            "=system": ["=1+1", "  @x", f"fine {EVIL}", None],
            "difference": [-0.12, 0.1 + 0.2, float("nan"), -1e-9],
            "label": pd.array([1, None, 5, 2], dtype="Int8"),
            "kind": pd.Categorical(["-a", "b", "-a", "b"]),
        }
    )
    rows = list(csv.reader(io.StringIO(csv_text(frame))))
    assert rows[0] == ["'=system", "difference", "label", "kind"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'@x", f"fine {SHOWN}", ""]
    assert [row[1] for row in rows[1:]] == ["-0.12", "0.30000000000000004", "", "-1e-09"]
    assert [row[2] for row in rows[1:]] == ["1", "", "5", "2"]
    assert [row[3] for row in rows[1:]] == ["'-a", "b", "'-a", "b"]
    assert frame["=system"].tolist()[0] == "=1+1"


def test_a_system_s_name_cannot_break_the_leaderboard() -> None:
    row = {
        "system": "bm25\nsim  0.99\x1b[2J", "ir_score": 0.5, "ir_score_lo": 0.4, "ir_score_hi": 0.6,
        "ir_score_in_best_set": True, "n_topics": 3, "n_judged": 3, "n_classed": 3,
    }  # fmt: skip
    lines = leaderboard_text(pd.DataFrame([row]), 100, judged=False).splitlines()
    assert [line for line in lines if "0.500*" in line] == [lines[3]]
    assert "bm25 sim 0.99␛[2J" in lines[3]


def test_a_log_line_on_the_terminal_shows_what_a_server_wrote() -> None:
    conf = Path(__file__).resolve().parents[2] / "conf" / "hydra" / "common.yaml"
    logs = yaml.safe_load(conf.read_text(encoding="utf-8"))["job_logging"]
    assert logs["handlers"]["console"]["formatter"] == "simple"
    assert logs["formatters"]["simple"]["()"] == "ragauge.contract.visible.Formatter"
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "the server says %s", (EVIL,), None)
    assert Formatter("%(message)s").format(record) == f"the server says {SHOWN}"


def test_what_shows_nothing_is_blank() -> None:
    assert all(map(is_blank, ["", " \n\u00a0", "\u200b", "\ufeff\u2060\u00ad", "\u3164\u2800", "\u200e\x00"]))
    assert not any(map(is_blank, ["a", "\u200ba", "0", ".", "\u0645\u200c", "\U0001f469\u200d\U0001f52c"]))
