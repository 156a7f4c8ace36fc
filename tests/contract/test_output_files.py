"""Files that a command writes where its user says: never over a file that somebody else wrote, unless told to."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.output_files import refuse_foreign, replacing, write_output
from ragauge.contract.visible import from_spreadsheet, sheet_text, spreadsheet_cell
from ragauge.datasets.labels import join_labels
from ragauge.estimate.topic_samples import Listed


def test_a_file_is_written_again_where_ragauge_wrote_it_or_it_is_empty_or_force_is_set(tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    refuse_foreign(file, "ragauge gate", force=False)
    write_output(file, "<ragauge gate>")
    refuse_foreign(file, "ragauge gate", force=False)
    file.write_text("my thesis, which speaks of nothing else\n" * 20 + "<ragauge gate>")
    with pytest.raises(ConfigError, match=r"gate.xml is there, and ragauge did not write it: .* --force"):
        refuse_foreign(file, "ragauge gate", force=False)
    refuse_foreign(file, "ragauge gate", force=True)
    file.write_text("")
    refuse_foreign(file, "ragauge gate", force=False)
    refuse_foreign(Path(os.devnull), "ragauge gate", force=False)
    write_output(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()


def test_a_file_of_a_folder_that_somebody_prepared_replaces_a_link_and_is_not_written_through_it(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (tmp_path / "outcomes.parquet").symlink_to(theirs)
    with replacing(tmp_path / "outcomes.parquet") as draft:
        draft.write_text("ours")
    assert (theirs.read_text(), (tmp_path / "outcomes.parquet").read_text()) == ("theirs", "ours")
    assert not (tmp_path / "outcomes.parquet").is_symlink()
    with pytest.raises(UnicodeEncodeError), replacing(tmp_path / "outcomes.parquet") as draft:
        draft.write_text("half" * 10_000 + "\ud800", encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outcomes.parquet", "theirs"]
    assert (tmp_path / "outcomes.parquet").read_text() == "ours"


@pytest.mark.parametrize("text", ["=1+1", "@x", "'=1", "-5", "plain", "'quoted'", ""])
def test_a_cell_that_was_kept_from_being_a_formula_is_read_as_it_was(text: str) -> None:
    assert from_spreadsheet(spreadsheet_cell(text)) == text or text == "'=1"


def test_sheets_hold_no_formula_and_are_read_with_the_qids_and_answers_that_they_had(tmp_path: Path) -> None:
    file = tmp_path / "sample.csv"
    file.write_text(sheet_text(pd.DataFrame({"qid": ["=1+1", "b"], "answered": [1, 1], "stratum": [0, 0]})))
    assert "\n'=1+1,1,0\n" in file.read_text()
    chosen = Listed.of_file(str(file)).chosen(pd.Series(["=1+1", "b"]), [])
    assert chosen["qid"].tolist() == ["=1+1", "b"]
    outcomes = pd.DataFrame({"qid": ["=1+1", "b"], "answer": ["@Paris", "Rome"]})
    labels = pd.DataFrame({"qid": ["'=1+1", "b"], "answer": ["'@Paris", "Rome"], "label": [5, 4]})
    assert join_labels(outcomes, labels, "sheet.csv")["human_label"].tolist() == [5, 4]
