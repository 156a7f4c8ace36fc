"""A CSV file of outcomes as a dataset: nothing can be retrieved from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_text
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.outcomes import CLUSTER
from ragauge.datasets import existing_file
from ragauge.datasets.labels import read_texts, require_cells, require_columns, require_once
from ragauge.experiment.clusters import told_apart

_STUDY = Path(__file__).parent / "study" / "outcomes.csv"
_OUTCOME_COLUMNS = ("system", "qid", "label", "ir_score", "count")


@option("dataset/outcomes")
class RecordedOutcomes(Source):
    """A CSV file of outcomes, `ir_score` and `label` in every row; a job of it only estimates.

    Further columns: `system` (whose answers; "recorded" without it), `qid` (without it every row is a topic
    of its own), any that `cluster` names, and `count` (so many equal rows; not beside qid). A label is a judge
    class, or empty where there is no verdict. `judged_shares` are the shares of classes 1 to 5 that are known
    of systems whose rows have no label.
    """

    component = "recorded_outcomes"
    run_job: ClassVar[str] = "ragauge.plugins.outcomes.job.run_recorded"

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    judged_shares: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text("dataset.name", self.name, "names")
        for system, shares in self.judged_shares.items():
            ok = len(shares) == len(JUDGE_CLASSES) and all(0 <= share <= 1 for share in shares)
            ok = ok and abs(sum(shares) - 1) <= 0.03
            what = "five shares, of classes 1 to 5, that add up to 1 but for rounding"
            require(f"dataset.judged_shares.{system}", list(shares), ok, what)

    def files(self) -> Mapping[str, Path]:
        """The file `outcomes`; ConfigError if it does not exist."""
        return {"outcomes": existing_file("path", self.path)}

    def load(self) -> Dataset:
        """ConfigError: there are no documents and questions."""
        raise ConfigError(
            f"dataset {self.name} holds outcomes alone, no documents or questions: nothing can be retrieved"
        )

    def outcomes(self, cluster: str | None = None) -> pd.DataFrame:
        """A row per answer: [qid, system, ir_score, label]; DataError names file, line and error.

        Equal qids of two systems are one topic. The qid of a row without one has the system's name in it, so that
        nothing is taken for an answer to the same question. `cluster` names the column of the topics' clusters
        (`topic_cluster` of the result). A topic without a value is one of its own. ConfigError for a column that is
        missing, and for one cluster of all topics.
        """
        file = self.files()["outcomes"]
        table = read_texts(file)
        require_columns(file, table, ("ir_score", "label"), None, f"columns are {', '.join(_OUTCOME_COLUMNS)}")
        score = pd.to_numeric(table["ir_score"], errors="coerce")
        classes = {"": 0, **{str(c): c for c in JUDGE_CLASSES}}
        counts = table["count"] if "count" in table else pd.Series("1", index=table.index)
        whole = counts.str.fullmatch(r"[1-9][0-9]{0,6}")
        for column, ok, allowed in (
            ("ir_score", score.between(0, 1), "a number in [0, 1]"),
            ("label", table["label"].isin(list(classes)), "a judge class 1 to 5, or nothing"),
            ("count", whole, "a whole number from 1"),
            ("qid", table["qid"] != "" if "qid" in table else whole, "a value"),
        ):
            require_cells(file, table, column, ok, allowed)
        if "qid" in table:
            require_once(file, table, [column for column in ("system", "qid") if column in table])
        if "qid" in table and "count" in table:
            raise DataError(f"{file}: columns qid and count: a row that has a qid is one answer")
        rows = pd.DataFrame(
            {
                "system": table.get("system", "recorded"),
                "ir_score": score.astype(float),
                "label": table["label"].map(classes),
                "qid": table.get("qid", ""),
            }
        )
        if cluster is not None:
            if cluster not in table:
                raise ConfigError(f"cluster={cluster}: {file} has no such column; there are {', '.join(table.columns)}")
            rows[CLUSTER] = table[cluster]
        rows = rows.loc[np.repeat(rows.index, counts.astype(int))].reset_index(drop=True)
        if rows.empty:
            raise DataError(f"{file}: no outcome in it")
        if "qid" not in table:
            number = rows.groupby("system").cumcount() + 1
            rows["qid"] = rows["system"] + "/" + number.astype(str)
        rows["label"] = rows["label"].astype("Int8").mask(rows["label"] == 0)
        columns = ["qid", "system", "ir_score", "label"]
        if cluster is not None:
            rows[CLUSTER] = rows[CLUSTER].where(rows[CLUSTER] != "", rows["qid"])
            of = rows.groupby("qid")[CLUSTER].agg(["nunique", "first"])
            if (of["nunique"] > 1).any():
                raise DataError(f"{file}: qid {of['nunique'].idxmax()!r} is in two clusters of the column {cluster!r}")
            columns += [CLUSTER] if told_apart(of["first"], cluster) else []
        return rows[columns].astype({"qid": "str", "system": "str"})


@dataclass(frozen=True)
class StudyOutcomes(RecordedOutcomes):
    """The study that the method comes from: 7,404 HotpotQA questions, Llama 3 8B, GPT-4o as judge, N = 1,000.

    The scores were read off the study's figures of sorted scores, to 0.003; they are facts of these figures
    and no file of the study. Every answer of BM25 has its class, but classes 2, 3 and 4 share one colour
    there: all of them stand as 4. The four other retrievers have scores alone. The order of the questions is lost: rows
        of two retrievers cannot be matched by question.
    """

    component = "study_outcomes"

    def files(self) -> Mapping[str, Path]:
        """The shipped file."""
        return {"outcomes": _STUDY if self.path is None else existing_file("path", self.path)}
