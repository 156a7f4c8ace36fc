"""The retrieval measures that everybody knows, over documents, by ir-measures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import RANKINGS
from ragauge.measures.trec import document_run

_F1 = re.compile(r"F1@([1-9][0-9]*)")


def metric_of(name: str) -> str:
    """MLflow's name, which allows no @, of a measure: P@5 is p_at_5."""
    return re.sub(r"[^a-z0-9]+", "_", name.replace("@", "_at_").lower()).strip("_")


def full_name(name: str) -> str:
    """The name of a measure as ir-measures prints it (RR for MRR); ConfigError for one that is not known."""
    return name if _F1.fullmatch(name) else str(_parse(name))


CLASSICS = {name: metric_of(name) for name in RANKINGS}
CLASSIC_NAMES = {metric: name for name, metric in CLASSICS.items()}


def classics(run: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[str]) -> dict[str, float]:
    """The mean of every measure over all topics of the qrels, by its `full_name`.

    `run` ranks chunks and is read at document level (`document_run`); `qrels` are those of `qrels_of`.
    `measures` are names of ir-measures such as P@1, R@5, nDCG@10, RR, AP; and F1@k, the mean over topics of
    2 P@k R@k / (P@k + R@k), 0 where both are 0. A topic without hits counts as 0. Raises ConfigError on a
    name that is not known, DataError where no topic has a relevant document.
    """
    import ir_measures

    if not measures:
        return {}
    asked = {full_name(name): _parts(name) for name in measures}
    if qrels.empty:
        raise DataError("no evidence names its document: retrieval measures over documents need qrels")
    truth = qrels.rename(columns={"qid": "query_id", "docno": "doc_id"})
    ranked = document_run(run).rename(columns={"qid": "query_id", "docno": "doc_id"})
    parsed = list(dict.fromkeys(part for parts in asked.values() for part in parts))
    rows = ir_measures.iter_calc(
        parsed,
        truth[["query_id", "doc_id", "relevance"]].astype({"query_id": object, "doc_id": object}),
        ranked[["query_id", "doc_id", "score"]].astype({"query_id": object, "doc_id": object}),
    )
    triples = [(row.query_id, str(row.measure), row.value) for row in rows]
    values = pd.DataFrame(triples, columns=["query_id", "measure", "value"])
    wide = values.pivot(index="query_id", columns="measure", values="value")
    wide = wide.reindex(index=truth["query_id"].unique(), columns=list(map(str, parsed))).fillna(0.0)
    return {name: float(_of(wide, parts).mean()) for name, parts in asked.items()}


def check_rankings(names: Sequence[str]) -> None:
    """ConfigError for a name in the config's `rankings` that is not known, or two of one metric."""
    metrics = [metric_of(full_name(name)) for name in names]
    twice = [name for name, metric in zip(names, metrics, strict=True) if metrics.count(metric) > 1]
    if twice:
        raise ConfigError(f"rankings: {' and '.join(twice)} are one metric")


def _parts(name: str) -> list[Any]:
    """The measures of ir-measures that a measure follows from."""
    f1 = _F1.fullmatch(name)
    return [_parse(f"{letter}@{f1[1]}") for letter in "PR"] if f1 else [_parse(name)]


def _of(wide: pd.DataFrame, parts: Sequence[Any]) -> pd.Series:
    """The values by topic of one measure, or the harmonic mean of two."""
    if len(parts) == 1:
        return wide[str(parts[0])]
    first, second = (wide[str(part)] for part in parts)
    both = first + second
    return (2 * first * second / both.where(both > 0, 1.0)).where(both > 0, 0.0)


def _parse(name: str) -> Any:
    import ir_measures

    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, SyntaxError) as error:
        raise ConfigError(
            f"rankings: {name!r} is no measure that ir-measures knows; names are written like P@1, R@5, "
            "F1@5, nDCG@10"
        ) from error
