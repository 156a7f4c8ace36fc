"""Sections for a terminal, as Markdown and as LaTeX: what stands where, worked out by hand."""

from __future__ import annotations

from ragauge.contract.finding import BEST, DIFFERS, Code, Col, Grid, Num, Section, Tagged, Text
from ragauge.show.tables import Sheet, fit, latex, markdown, n_columns, terminal

SCORES = Grid(
    "Scores",
    ["System", Col("Score"), Col("Right", on_paper=False)],
    [
        ["bm25", Num(0.5, "score", 0.4, 0.6, tag=BEST), Num(0.25, "share")],
        ["sim", Num(-0.25, "score", -0.5, 0.125, tag=DIFFERS), Num(None, "share")],
        [],
        ["none", Num(0.125), Num(1.0, "share")],
    ],
)
SHEET = Sheet("Two runs", [Section("Means", [Text("Of 4 topics."), SCORES])], ["A note."], {"bm25": "0a1b"})


def lines(sheet: Sheet, width: int = 80) -> list[str]:
    return terminal(sheet, width).splitlines()


def test_a_terminal_has_numbers_on_the_right_with_their_marks() -> None:
    assert lines(SHEET) == [
        "Two runs", "",
        "Means",
        "Of 4 topics.",
        "System                     Score    Right",
        "bm25      0.500^  [0.400, 0.600]   25.0 %",
        "sim     -0.250†  [-0.500, 0.125]        –",
        "",
        "none                     0.125    100.0 %",
        "",
        "^ best of its column.",
        "A note.",
    ]  # fmt: skip


def test_the_mark_of_the_best_is_explained_where_there_is_one() -> None:
    plain = Grid("Scores", "System | Score", [["bm25", Num(0.5)], ["sim", Num(0.25, tag=DIFFERS)]])
    sheet = Sheet("Two runs", [Section("Means", [plain])], [])
    for text in (terminal(sheet, 80), markdown(sheet), latex(sheet)):
        assert "best of its column" not in text
    for text in (terminal(SHEET, 80), markdown(SHEET), latex(SHEET)):
        assert text.count("best of its column") == 1


def test_columns_that_do_not_fit_go_on_below_behind_the_names() -> None:
    grid = Grid("Wide", "System | <Part | First | Second | Third", [["bm25", "all", *["12345678"] * 3]])
    assert lines(Sheet("h", [Section("s", [grid])], []), 34) == [
        "h", "",
        "s",
        "System  Part     First    Second",
        "bm25    all   12345678  12345678",
        "System  Part     Third",
        "bm25    all   12345678",
        "", "",
    ]  # fmt: skip


def test_a_name_that_leaves_no_room_is_cut_short() -> None:
    grid = Grid("Wide", "System | Score", [["a" * 60, "0.5"], ["b", "0.25"]])
    shown = lines(Sheet("h", [Section("s", [grid])], []), 30)
    assert shown[3:6] == ["System" + " " * 19 + "Score", "a" * 22 + "…    0.5", "b" + " " * 25 + "0.25"]
    assert lines(Sheet("h", [Section("s", [grid])], []), 5)[4].startswith("a")


def test_long_texts_stand_row_by_row_under_a_number() -> None:
    columns = ["Question", Col("Kind", left=True), Col("Answer", left=True, wrap=True), Col("Score")]
    rows = [["Who?", "x", "Ann", "1"], ["", "", "Bob", "0.5"], ["Where?", "y", "Rome", "0"]]
    assert lines(Sheet("h", [Section("s", [Grid("Topics", columns, rows)])], []))[3:6] == [
        "  1. Who?: x: Ann", "       1", "     0.5",
    ]  # fmt: skip


def test_paragraphs_wrap_between_words_and_lines_of_others_stay_one() -> None:
    sheet = Sheet("h", [Section("s", [Text("one two three four five\nsix seven well-known")])], [])
    assert lines(sheet, 20)[3:7] == ["one two three four", "five six seven", "well-known", ""]
    assert lines(sheet, 3) == lines(sheet, 20)
    grid = Grid("Names", "System | Note", [["two\nlines\x1b", "a\tb"]])
    named = Sheet("h", [Section("s", [grid])], [])
    assert lines(named)[4] == "two lines␛   a b"
    assert markdown(named).splitlines()[-3].startswith("| two lines␛ | a b |")


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    assert [n_columns(text) for text in ("abc", "漢字", "e\u0301")] == [3, 4, 1]
    assert [fit("漢字漢字", width) for width in (8, 7, 6, 2)] == ["漢字漢字", "漢字漢…", "漢字…", "…"]


def test_markdown_has_pipe_tables_and_escapes() -> None:
    assert markdown(SHEET).splitlines() == [
        "Two runs", "",
        "### Means", "",
        "Of 4 topics.", "",
        "| System | Score | Right |",
        "| --- | ---: | ---: |",
        "| bm25 | **0.500** [0.400, 0.600] | 25.0 % |",
        "| sim | −0.250† [−0.500, 0.125] | – |",
        "| none | 0.125 | 100.0 % |", "",
        "- Bold: best of its column.",
        "- A note.",
    ]  # fmt: skip
    grid = Grid("g", ["a|b", Col("long", left=True, wrap=True)], [[Code("x_y"), "<b>" * 60], [Tagged("k", "tag"), "*"]])
    row, second = markdown(Sheet("#1", [Section("s", [grid])], [])).splitlines()[6:8]
    assert row == rf"| x\_y | {'&lt;b&gt;' * 53}… |"
    assert second == r"| k tag | \* |"


def test_latex_leaves_out_what_is_not_for_paper_and_refers_to_the_first_table() -> None:
    sheet = Sheet("h", [Section("s", [Grid("Plain", "System | N", [["a_b", "100 %"]]), Text("Of 4."), SCORES, SCORES])],
                  ["A & B."], {"bm25": "0a1b"})  # fmt: skip
    text = latex(sheet)
    assert text.splitlines()[:2] == [r"% needs \usepackage{booktabs}", "% bm25: MLflow run 0a1b"]
    plain, first, second = text.split(r"\begin{table}")[1:]
    assert r"a\_b & 100 \% \\" in plain
    assert r"\caption{Plain. Of 4.}" in plain
    assert r"\begin{tabular}{lr}" in first
    assert r"bm25 & \textbf{0.500} {\scriptsize [0.400, 0.600]} \\" in first
    assert r"sim & $-$0.250$^{\dagger}$ {\scriptsize [$-$0.500, 0.125]} \\" in first
    assert "Right" not in first
    assert r"\caption{Scores. Of 4. Bold: best of its column. A \& B.}" in first
    assert r"\label{tab:ragauge-2}" in first
    assert r"\caption{Scores. Of 4. Marks, tests and intervals as in Table~\ref{tab:ragauge-2}.}" in second
    empty = latex(Sheet("h", [Section("s", [Grid("Nothing", "System | N", [])])], []))
    assert r"System & N \\" in empty
