"""`judge=recorded`: classes from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.answering.judges.frame import NO_ANSWER, Verdict, verdict_frame
from ragauge.contract.answering import Judge
from ragauge.contract.checks import require_text
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets import recordings
from ragauge.datasets.recordings import Recorded

NO_LABEL = "missing"


@option("judge/recorded")
class RecordedJudge(Judge):
    """The judge classes of a file: {qid, label}, 1 to 5 or null, as JSON Lines, a JSON list, CSV or Parquet.

    Nothing is compared, so topics without a reference answer are judged, too. A null label is a missing
    verdict. `name` says who judged: jobs whose judges have different names are not pooled.

    system: the system whose rows are read, in a file of several. on_missing: `raise`, or `missing`: topics that are not
    in the file have a missing verdict.
    """

    component = "recorded"
    kind = "recorded"
    needs_reference = False

    path: str | Path | None = runtime(None)
    # In the verdicts' key (`files`), but not in what judges: systems are compared.
    system: str | None = runtime(None)
    name: str = CONF
    on_missing: str = runtime("raise")

    def __post_init__(self) -> None:
        require_text("judge.name", self.name, "names")
        recordings.check_picking("judge", self.system, self.on_missing)

    def files(self) -> Mapping[str, Path]:
        """The file; ConfigError if it is not there."""
        file = recordings.recorded_file("judge.path", self.path)
        return {"labels" if self.system is None else f"labels of {self.system}": file}

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts`; status ok, missing, or `no answer` where there is neither label nor answer.

        DataError names file and line of a label that is no judge class.
        """
        keys = answers[["qid", "n_tokens"]]
        if answers.empty:
            return verdict_frame(keys, [])
        [file] = self.files().values()
        rows = recordings.read_rows(file, self.system, "judge.system")
        if not any("label" in row.values for row in rows):
            raise DataError(f"{file}: no row has a label, a judge class 1 to 5")
        given = [(row.qid, _label(row)) for row in rows]
        qids = list(dict.fromkeys(answers["qid"]))
        found = recordings.by_topic(file, given, qids, "label", self.on_missing)
        verdicts = [
            Verdict(label)
            if (label := found.get(qid)) is not None
            else Verdict(None, NO_ANSWER if pd.isna(answer) else NO_LABEL, error=f"no label in {file.name}")
            for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
        ]
        return verdict_frame(keys, verdicts)


_CLASSES: Mapping[Any, int] = {text: c for c in JUDGE_CLASSES for text in (c, str(c), f"{c}.0")}


def _label(row: Recorded) -> int | None:
    """The class of a row; None where its label is null."""
    given = row.values.get("label")
    label = None if isinstance(given, (bool, list, Mapping)) else _CLASSES.get(given)
    if given is not None and label is None:
        raise DataError(f"{row.place}: label {given!r} is no judge class: allowed are 1 to 5 and null")
    return label
