"""Clusters of topics with shared documents, and their effect on precision.

Several questions about one document, user or template are no independent observations (docs/method.md). Estimates from
a frame with a column `topic_cluster` take whole clusters as the unit that varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.outcomes import CLUSTER, SHARED
from ragauge.estimate.intervals import bounded_mean
from ragauge.estimate.outcomes import RIGHT, asked, by_cluster, labels_of, scored, topic_codes, with_classes

_FEWEST = 10  # clusters from which an intraclass correlation is said: its interval is useless below
_NOTICEABLE = 1.1  # times as wide: less is no line on the terminal, where nobody chose clusters


@dataclass(frozen=True)
class Clustering:
    """The correlation within clusters of values in [0, 1], one per topic.

    of: the name of the values. icc: the intraclass correlation (analysis of variance, Donner & Koval 1980), NaN where
    it is not defined.
    width_ratio: the width of the mean's interval over clusters, over that over topics; NaN for one cluster.
    """

    n_topics: int
    n_clusters: int
    largest: int
    icc: float
    width_ratio: float
    of: str = "values"


def clustering(values: np.ndarray, clusters: np.ndarray | pd.Series, of: str = "values") -> Clustering:
    """The `Clustering` of `values` [topics] in `clusters` [topics], of at least one topic."""
    codes, n = topic_codes(clusters)
    sizes = np.bincount(codes).astype(float)
    means = by_cluster(values, codes) / sizes
    total, icc = len(values), float("nan")
    if 1 < n < total:
        between = float(sizes @ (means - values.mean()) ** 2) / (n - 1)
        within = float(((values - means[codes]) ** 2).sum()) / (total - n)
        size = (total - float(sizes @ sizes) / total) / (n - 1)
        spread = between + (size - 1) * within
        icc = (between - within) / spread if spread > 0 else icc
    over = [bounded_mean(values, clusters=units) for units in (clusters, None)]
    ratio = (over[0].hi - over[0].lo) / (over[1].hi - over[1].lo)
    return Clustering(total, n, int(sizes.max()), icc, ratio, of)


def connected(evidence: pd.DataFrame, qids: Sequence[str]) -> pd.Series:
    """The cluster of every topic, as text by qid: topics linked by shared evidence documents.

    `evidence` has qid and docno (missing where it is in no document). A cluster is named by one of its documents, a
    topic that shares none by its qid.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = evidence[evidence["docno"].notna() & evidence["qid"].isin(qids)]
    topic = pd.Index(qids).get_indexer(pd.Index(rows["qid"]))
    docs, names = pd.factorize(rows["docno"])
    n = len(qids)
    links = coo_array((np.ones(len(rows)), (topic, n + docs)), shape=(n + len(names),) * 2)
    part = connected_components(links, directed=False)[1]
    size = np.bincount(part[:n], minlength=part.max(initial=0) + 1)
    of_part = dict(zip(part[n:][::-1], names[::-1], strict=True))  # the first document of each
    found = [str(of_part[at]) if size[at] > 1 else str(qid) for qid, at in zip(qids, part[:n], strict=True)]
    return pd.Series(found, index=pd.Index(qids), dtype="str")


def clusterings(rows: pd.DataFrame) -> list[Clustering]:
    """`Clustering` of right answers, or of IR scores without verdicts, of one system; [] without clusters.

    The clusters are those of the frame, else those of shared documents.
    """
    column = next((name for name in (CLUSTER, SHARED) if name in rows), None)
    if column is None:
        return []
    if "label" in rows and rows["label"].notna().any():
        known, of = asked(with_classes(rows)), "right answers"
        values = (labels_of(known) == RIGHT).astype(float)
    else:
        known, of = scored(rows), "the IR score"
        values = known["ir_score"].to_numpy(dtype=float)
    return [clustering(values, known[column], of)] if len(known) and known[column].nunique() < len(known) else []


def clustered_text(found: Sequence[Clustering], chosen: bool) -> str:
    """Text on the effect of clusters on intervals, from `clusterings`; `chosen`: intervals are over them."""
    one, ratios = found[0], [each.width_ratio for each in found]
    iccs = [each.icc for each in found if each.icc == each.icc and each.n_clusters >= _FEWEST]
    of = f"{one.n_clusters} clusters of {one.n_topics} topics (the largest has {one.largest})"
    if one.n_clusters == 1 and not chosen:
        of = f"all {one.n_topics} topics hang together through shared documents of their evidence"
        return f"{of}, so intervals may be too narrow: an attribute may part them (cluster=<attribute>)"
    text = f"intraclass correlation of {one.of} {_range(iccs)}, " if iccs else ""
    if not chosen:
        return (
            f"topics share documents of their evidence: {of}, {text}intervals over clusters would be {_range(ratios)} "
            "times as wide: cluster=document makes them so"
        )
    return f"intervals and tests are over {of}: {text}{_range(ratios)} times the width over topics"


def clustered_line(found: Sequence[Clustering], chosen: bool) -> str:
    """`clustered_text` in a line of 80 columns; "" if default clusters widen no interval by a tenth."""
    ratios = [each.width_ratio for each in found]
    one, times = found[0], _range(ratios)
    if chosen:
        return f"intervals over {one.n_clusters} clusters of topics are {times} times as wide"
    if one.n_clusters == 1:
        return "all topics share documents, intervals may be too narrow: cluster=<attribute>"
    if max(ratios) < _NOTICEABLE:
        return ""
    return f"shared documents: cluster=document makes intervals {times} times as wide"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def same_clusters(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Outcomes of several jobs with each topic's cluster, known from any job, in all of them."""
    for column in (CLUSTER, SHARED):
        if column in outcomes and outcomes[column].isna().any():
            known = outcomes[column].groupby(outcomes["qid"]).transform("first")
            outcomes = outcomes.assign(**{column: known.fillna(outcomes["qid"])})
    return outcomes
