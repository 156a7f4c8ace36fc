"""The sheet of answers for people to label: built from runs, drawn, written, and extended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ragauge.contract.checks import require, require_count
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Jobs
from ragauge.contract.visible import spreadsheet_cell
from ragauge.datasets.labels import read_human_labels, with_human_labels, words_of
from ragauge.estimate.outcomes import asked, with_classes
from ragauge.plugins.labels.design import draw
from ragauge.plugins.labels.expected import Expected, expected

DEFAULT = 100  # answers on a sheet
_SAME = 1e-6  # of two probabilities that are equal


@dataclass(frozen=True)
class Sheet:
    """rows: the written table. expected: the sizes used for drawing. kept: rows whose label the file had."""

    rows: pd.DataFrame
    expected: Expected
    systems: int
    kept: int


def answers_of(sweeps: Sequence[Jobs]) -> pd.DataFrame:
    """The runs' answers with a verdict and a text, at the largest budget shared by a sweep's systems.

    DataError where a run has no verdicts, or judged a sample, and where the runs are over different topics.
    """
    found = []
    for jobs in sweeps:
        rows = jobs.at_n
        for name, part in rows.groupby("system", sort=False):
            if part["label"].isna().all():
                raise DataError(f"{name}: no answer has a verdict, so there is nothing that labels could correct")
            if len(asked(part)) < len(part):
                raise DataError(f"{name}: a sample of its answers was judged; labels correct verdicts on all answers")
        found.append(rows.assign(sweep=jobs.sweep_id))
    rows = pd.concat(found, ignore_index=True)
    several = rows.groupby("system")["sweep"].transform("nunique") > 1
    rows["system"] = rows["system"].where(~several, rows["system"] + " (" + rows["sweep"] + ")")
    other = rows.groupby("qid")["query"].transform("nunique") > 1
    if other.any():
        raise DataError(f"the runs are over different topics: qid {rows.loc[other, 'qid'].iloc[0]!r} has two questions")
    rows = with_classes(rows).rename(columns={"label": "judge_class"})
    return rows[rows["answer"].map(words_of).ne("")].reset_index(drop=True)


def make_sheet(
    rows: pd.DataFrame,
    budget: int | None,
    seed: int,
    out: Path,
    earlier: Path | None = None,
    uniform: float | None = None,
) -> Sheet:
    """The sheet of at most `budget` answers, equally many per system; extends `out` if it exists.

    Without a budget they are DEFAULT, or all of fewer.

    `earlier` is a file of labels that the judge's errors are learnt from. ConfigError for numbers out of range,
    DataError for labels of answers that no run has, and where `out` was drawn otherwise.
    """
    systems = rows["system"].nunique()
    budget = min(DEFAULT, len(rows)) if budget is None else budget
    require_count("budget", budget, 2 * systems)
    if uniform is not None:
        require("uniform", uniform, 0.2 <= uniform <= 1, "0.2 to 1")
    if budget > len(rows):
        raise ConfigError(f"budget={budget}: there are {len(rows):,} answers")
    before, salt = pd.Series(pd.NA, index=rows.index, dtype="Int8"), ""
    if earlier is not None:
        before, salt = _labels_in(earlier, rows), hashlib.sha256(earlier.read_bytes()).hexdigest()
    known = expected(rows.assign(earlier_human=before, label=rows["judge_class"]), uniform, seed)
    given, kept = before, 0
    if out.exists():
        given, kept = _labels_in(out, rows).fillna(before), _refuse_other(out, rows, known, budget, seed, salt)
    table = _table(rows.assign(label=given), known, budget // systems, seed, salt)
    return Sheet(table, known, systems, kept)


def _labels_in(path: Path, rows: pd.DataFrame) -> pd.Series:
    """The labels of these answers in a file; DataError for a label of an answer that no run has."""
    parts = [with_human_labels(part, path) for _, part in rows.groupby("system", sort=False)]
    found = pd.concat([part.get("human_label", pd.Series(pd.NA, part.index)) for part in parts]).astype("Int8")
    return found.reindex(rows.index)


def _table(rows: pd.DataFrame, known: Expected, n: int, seed: int, salt: str) -> pd.DataFrame:
    """The drawn answers, n per system, in drawing order."""
    every = _every(rows, known, n, seed, salt)
    return every[every["place"] < n].drop(columns="place")


def _every(rows: pd.DataFrame, known: Expected, n: int, seed: int, salt: str) -> pd.DataFrame:
    """All answers with their places in the drawing order; systems with equal answers share a row.

    Such an answer is drawn if any of the systems draws it. Their random numbers are the same, so its probability is the
    largest of theirs where n are drawn per system.
    """
    sizes = pd.Series(known.sizes, rows["qid"].to_numpy())
    drawn = pd.concat(
        [
            draw(sizes[mask], n, seed, salt).set_index(rows.index[mask])
            for mask in (rows["system"].eq(name).to_numpy() for name in rows["system"].unique())
        ]
    )
    groups = [name for name in GROUPS if name in rows and rows[name].nunique() > 1]
    told = rows.assign(
        **drawn,  # pyrefly: ignore[bad-unpacking]
        judge_class=rows["judge_class"].astype("Int8"),
        words=rows["answer"].map(words_of),
    )
    alike = told.sort_values(["place", "system"]).groupby(["qid", "n_tokens", *groups, "words"], sort=False)
    columns = ["query", "answer_reference", "answer", "judge_class", "label", "place"]
    merged = alike[[c for c in columns if c in told]].first().assign(
        system=alike["system"].agg("; ".join), probability=alike["probability"].max()
    )  # fmt: skip
    found = merged.reset_index()
    order = ["qid", "n_tokens", *groups, "system", *columns[:-1], "probability", "place"]
    return found[[c for c in order if c in found]]


def _refuse_other(out: Path, rows: pd.DataFrame, known: Expected, budget: int, seed: int, salt: str) -> int:
    """The number of labels in the sheet `out`; DataError if it was not drawn like this from these answers."""
    old = read_human_labels(out)
    if not {"system", "answer", "probability"} <= set(old):
        raise DataError(f"{out}: no sheet of ragauge labels (it has no probability): give another file by --out")

    def beside(now: pd.DataFrame) -> pd.DataFrame:
        # As a sheet has them: no cell of it is a formula.
        now = now.assign(**{name: now[name].map(spreadsheet_cell) for name in ("qid", "system")})
        return old.merge(now, on=["qid", "system"], suffixes=("", "_now"))

    place = beside(_every(rows, known, 1, seed, salt))["place"]
    n = int(place.max()) + 1 if len(place) else 1
    again = _table(rows, known, n, seed, salt)
    both = beside(again)
    apart = (both["probability"] - both["probability_now"]).abs().max()
    if len(both) < max(len(old), len(again)) or apart > _SAME:
        raise DataError(
            f"{out}: the sheet was drawn from other runs, verdicts, earlier labels or --seed: give another file by "
            "--out"
        )
    if n > budget // rows["system"].nunique():
        raise DataError(f"{out} has {len(old)} answers: a larger budget draws more, a smaller one none")
    return int(old["label"].notna().sum())
