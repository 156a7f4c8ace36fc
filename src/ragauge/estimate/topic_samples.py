"""Samples of topics to judge, or to answer and judge: a draw, or those of a file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import from_spreadsheet
from ragauge.estimate.sampling import choose_topics


@dataclass(frozen=True)
class Sample:
    """Number and design of the topics to judge, or to answer and judge: `uniform`, or `neyman` by P(5).

    of: its config group, judge or llm.
    """

    n: int
    design: str = "uniform"
    seed: int = 0
    of: str = "judge"

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 2:
            raise ConfigError(f"{self.of}.sample={self.n}: allowed are integers of at least 2, null for all")
        if self.design not in ("uniform", "neyman"):
            raise ConfigError(f"{self.of}.sample_design={self.design}: allowed are uniform, neyman")

    def chosen(self, qids: pd.Series, unjudged: Collection[str]) -> pd.DataFrame:
        """A uniform sample of the topics that can be judged, or of all if none can: [qid, stratum, judged]."""
        rest = qids[~qids.isin(list(unjudged))]
        even = pd.Series(0.5, index=rest if len(rest) else qids)  # any P(5), as the draw does not depend on it
        return choose_topics(even, self.n, seed=self.seed, design="uniform")


def _read(file: str) -> pd.DataFrame:
    """The rows of a file of topics, with qids unescaped from `spreadsheet_cell`."""
    rows = pd.read_csv(file, dtype={"qid": "str"})
    return rows.assign(qid=rows["qid"].map(from_spreadsheet, na_action="ignore")) if "qid" in rows else rows


@dataclass(frozen=True)
class Listed(Sample):
    """The topics of a CSV file: [qid, answered (1, 0)] and, if drawn by strata, stratum (an integer)."""

    file: str = ""

    @classmethod
    def of_file(cls, file: str) -> Listed:
        """Reads the file; ConfigError for another form, or a stratum with fewer than two answered topics."""
        key = f"llm.sample={file}"
        try:
            rows = _read(file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{key}: no CSV file that can be read: {error}; allowed are integers and files") from None
        if not {"qid", "answered"} <= set(rows) or rows["qid"].isna().any() or rows["qid"].duplicated().any():
            raise ConfigError(f"{key}: allowed are the columns qid (each topic once), answered and stratum")
        for name in ("answered", *({"stratum"} & set(rows))):
            of = rows[name]
            bad = ~of.isin([0, 1]) if name == "answered" else of.isna() | of.astype("str").str.contains("[^0-9]")
            if bad.any():
                number = "0 or 1" if name == "answered" else "an integer of at least 0"
                raise ConfigError(f"{key}: {name} of qid={rows['qid'][bad].iloc[0]!r} is not {number}")
        by = rows.groupby(rows.get("stratum", rows["qid"].isna()))["answered"]
        for stratum, (size, n) in by.agg(["size", "sum"]).iterrows():
            if n < min(2, size):
                raise ConfigError(f"{key}: stratum {stratum} names {n} of {size} topics; it takes at least 2")
        return cls(int(rows["answered"].sum()), "uniform", of="llm", file=file)

    def chosen(self, qids: pd.Series, unjudged: Collection[str]) -> pd.DataFrame:
        """The file's topics that can be judged: [qid, stratum, judged]; ConfigError if it lacks a qid."""
        rows = _read(self.file).set_index("qid")
        if not qids.isin(rows.index).all():
            raise ConfigError(f"llm.sample={self.file}: no row of qid={qids[~qids.isin(rows.index)].iloc[0]!r}")
        rest = qids[~qids.isin(list(unjudged))]
        rows = rows.loc[rest if len(rest) else qids]
        stratum = rows["stratum"] if "stratum" in rows else pd.Series(0, index=rows.index)
        return pd.DataFrame(
            {"qid": rows.index, "stratum": stratum.to_numpy(), "judged": rows["answered"].eq(1).to_numpy()}
        )
