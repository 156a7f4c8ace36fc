"""The scores of every topic at every budget: a measure over evidence and contexts, as frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.engine import Engine, LocalEngine, slices
from ragauge.contract.errors import DataError
from ragauge.contract.measures import Measure, MeasuresPieces, Pieces


def part_scores(
    measure: Measure,
    evidence: pd.DataFrame,
    layouts: pd.DataFrame,
    prefixes: pd.DataFrame,
    tools: Tools | None = None,
) -> pd.DataFrame:
    """The measure of every evidence part at every budget of its topic: qid, n_tokens, part, value.

    Rows stand in the order of `prefixes`, parts in theirs. `value` is in [0, 1]; it is 0 in an empty context,
    and missing where an LLM that was asked did not answer. `tools` are for measures that take shared models.
    Raises DataError where a topic of `prefixes` has no evidence, a part is white space only, or a layout is
    not there.
    """
    qids = pd.Index(prefixes["qid"].unique())
    parts = evidence[qids.get_indexer(pd.Index(evidence["qid"])) >= 0].sort_values(["qid", "part"], kind="stable")
    _check_evidence(parts, qids)
    if prefixes.empty:
        dtypes = {"qid": "str", "n_tokens": "int64", "part": "int64", "value": "float64"}
        return pd.DataFrame({column: pd.Series(dtype=dtype) for column, dtype in dtypes.items()})
    rows_of_qid = parts.groupby("qid").indices
    texts, numbers = parts["text"].to_numpy(dtype=object), parts["part"].to_numpy()

    # One context per layout that a prefix names; its ends rise, whatever order the prefixes stand in.
    ordered = prefixes.assign(row=np.arange(len(prefixes))).sort_values(["qid", "layout", "end"], kind="stable")
    context = ordered.groupby(["qid", "layout"], sort=False).ngroup().to_numpy()
    first = np.flatnonzero(np.diff(context, prepend=-1))
    wanted = ordered[["qid", "layout"]].iloc[first].merge(layouts, on=["qid", "layout"], how="left")
    if wanted["text"].isna().any():
        at = int(np.flatnonzero(wanted["text"].isna())[0])
        raise DataError(f"layouts frame: no layout {wanted['layout'].iloc[at]} of qid={wanted['qid'].iloc[at]!r}")
    rows = [rows_of_qid[qid] for qid in wanted["qid"]]
    ends = np.split(ordered["end"].to_numpy(), first[1:])
    values = _scored(measure, [list(texts[of_topic]) for of_topic in rows], wanted, ends, tools)

    counts = np.array([len(of_topic) for of_topic in rows])[context]  # parts of every ordered prefix
    flat = pd.DataFrame(
        {
            "row": np.repeat(ordered["row"].to_numpy(), counts),
            "part": np.concatenate([np.tile(numbers[r], len(e)) for r, e in zip(rows, ends, strict=True)]),
            "value": np.concatenate([of_context.T.ravel() for of_context in values]),
        }
    ).sort_values("row", kind="stable", ignore_index=True)
    keys = prefixes[["qid", "n_tokens"]].iloc[flat["row"]].reset_index(drop=True)
    return pd.concat([keys, flat[["part", "value"]]], axis=1)


def score_frame(
    measure: Measure, evidence: pd.DataFrame, layouts: pd.DataFrame, prefixes: pd.DataFrame
) -> pd.DataFrame:
    """Frame `scores`: the mean of the measure over the evidence parts, a row for every row of `prefixes`.

    With Substring this is the IR score. Topics without hits are there, with 0. Errors as in `part_scores`.
    """
    return mean_over_parts(part_scores(measure, evidence, layouts, prefixes), measure.name)


def measured_parts(scores_of_parts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `part_scores` for the topics and budgets at which every part has a value."""
    missing = scores_of_parts["value"].isna()
    if not missing.any():
        return scores_of_parts
    lost = missing.groupby([scores_of_parts["qid"], scores_of_parts["n_tokens"]]).transform("any")
    return scores_of_parts[~lost].reset_index(drop=True)


def mean_over_parts(scores_of_parts: pd.DataFrame, name: str) -> pd.DataFrame:
    """Frame `scores` of the measure `name` from the rows of `part_scores`, in their order."""
    if scores_of_parts.empty:
        return frames.empty("scores")
    values = scores_of_parts.groupby(["qid", "n_tokens"], sort=False)["value"]
    means = values.mean().reset_index().assign(measure=name).astype({"measure": "str"})
    return frames.check("scores", means[["qid", "n_tokens", "measure", "value"]], f"measure {name}")


Contexts = tuple[list[list[str]], list[str], list[np.ndarray]]  # evidence, text and ends of each


@dataclass(frozen=True)
class _Scores:
    """Computes the measure's values of contexts."""

    measure: Measure

    def __call__(self, contexts: Contexts) -> list[np.ndarray]:
        return list(self.measure.score_all(*contexts))


def _scores_by(engine: Engine, measure: Measure, contexts: Contexts) -> list[np.ndarray]:
    """`score_all` by the engine's workers."""
    if engine.block_rows is not None and measure.threads == 0:
        measure = replace(measure, threads=1)  # type: ignore[type-var]  # a worker is a core, not its machine
    blocks = (tuple(rows[at] for rows in contexts) for at in slices(len(contexts[1]), engine))
    return list(chain.from_iterable(engine.map(_Scores(measure), blocks)))


def _scored(
    measure: Measure,
    evidence: list[list[str]],
    layouts: pd.DataFrame,
    ends: list[np.ndarray],
    tools: Tools | None,
) -> list[np.ndarray]:
    """`score_all` of the layouts, or the values of their pieces by a measure of single passages."""
    if not isinstance(measure, MeasuresPieces):
        engine = LocalEngine() if tools is None else tools.engine
        return _scores_by(engine, measure, (evidence, layouts["text"].tolist(), ends))
    if tools is None:
        raise TypeError(f"measure {measure.name} takes shared models, and was given none")
    pieces = [_pieces(*one) for one in zip(layouts["text"], layouts["starts"], strict=True)]
    return measure.score_pieces(evidence, pieces, ends, tools)


def _pieces(text: str, starts: Sequence[int]) -> Pieces:
    at = [int(start) for start in starts]
    if not at:
        return Pieces([], [])
    # A piece ends at the space before the next one.
    return Pieces([text[a:b] for a, b in zip(at, [*(b - 1 for b in at[1:]), len(text)], strict=True)], at)


def _check_evidence(parts: pd.DataFrame, qids: pd.Index) -> None:
    without = qids[pd.Index(parts["qid"].unique()).get_indexer(qids) < 0]
    if len(without):
        raise DataError(
            f"evidence frame: {len(without)} topic(s) have no evidence, the first is qid={without[0]!r}; "
            "every topic that is scored needs at least one part"
        )
    blank = parts[parts["text"].str.strip() == ""]
    if len(blank):
        raise DataError(
            f"evidence frame: qid={blank['qid'].iloc[0]!r}, part={blank['part'].iloc[0]}: the text is empty "
            "or white space only; there is nothing to match"
        )
