"""The columns of a table, from their titles in a line."""

from __future__ import annotations

from ragauge.contract.finding import Col, columns_of


def test_a_line_of_titles_says_which_stand_left_and_what_stands_below_them() -> None:
    wide = Col("Answer", wrap=True, on_paper=False)
    system, share = columns_of("<System | Right / share")
    assert (system.title, system.note, system.left, system.wrap, system.on_paper) == ("System", "", True, False, True)
    assert (share.title, share.note, share.left) == ("Right", "share", False)
    assert columns_of([wide, "<System"]) == [wide, system]
