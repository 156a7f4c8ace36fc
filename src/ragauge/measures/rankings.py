"""The retrieval measures that everybody knows, over documents, by ir-measures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures.trec import document_run

# ir-measures' name of a measure to MLflow's, which allows no @.
CLASSICS = {
    "P@1": "p_at_1",
    "P@5": "p_at_5",
    "R@1": "r_at_1",
    "R@5": "r_at_5",
    "R@10": "r_at_10",
    "nDCG@10": "ndcg_at_10",
    "RR": "rr",
}


def classics(run: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[str]) -> dict[str, float]:
    """The mean of every measure over all topics of the qrels, by its name as ir-measures prints it.

    `run` ranks chunks and is read at document level (`document_run`); `qrels` are those of `qrels_of`.
    `measures` are names such as P@1, R@5, nDCG@10, RR, AP. A topic without hits counts as 0. Raises
    ConfigError on a name that ir-measures does not know, DataError where no topic has a relevant document.
    """
    import ir_measures

    parsed = [_parse(name) for name in measures]
    if not parsed:
        return {}
    if qrels.empty:
        raise DataError("no evidence names its document: retrieval measures over documents need qrels")
    truth = qrels.rename(columns={"qid": "query_id", "docno": "doc_id"})
    ranked = document_run(run).rename(columns={"qid": "query_id", "docno": "doc_id"})
    found = ir_measures.calc_aggregate(
        parsed,
        truth[["query_id", "doc_id", "relevance"]].astype({"query_id": object, "doc_id": object}),
        ranked[["query_id", "doc_id", "score"]].astype({"query_id": object, "doc_id": object}),
    )
    return {str(measure): float(found[measure]) for measure in parsed}


def _parse(name: str):  # type: ignore[no-untyped-def]  # ir-measures has no types
    import ir_measures

    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, SyntaxError) as error:
        raise ConfigError(
            f"measure {name!r} is not one that ir-measures knows; names are written like P@1, R@5, nDCG@10"
        ) from error
