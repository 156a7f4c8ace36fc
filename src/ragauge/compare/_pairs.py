"""Which runs make pairs, and how a pair differs topic by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.progress import progress
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.diagnose.failures import CAUSE
from ragauge.estimate import compare_pairs
from ragauge.estimate.pairs import holm
from ragauge.estimate.predictor import PROBABILITY_COLUMNS
from ragauge.estimate.slicing import PREFIX
from ragauge.track import LoggedRun, Reader

_TABLE = "per_question.json"
HEADLINE = "headline"  # the section of IR score, right answers and hallucinations


def choose_compared(table: pd.DataFrame, swept: bool, n_tokens: int | None) -> tuple[int | None, list[str]]:
    """The budget of the pairs (None where the runs have several), and the ids of the runs that make them."""
    budgets = sorted(set(table["n_tokens"].tolist()))
    if n_tokens is None and not swept:
        return (budgets[0] if len(budgets) == 1 else None), table["run_id"].tolist()
    if n_tokens is None:
        of_systems = [set(rows["n_tokens"]) for _, rows in table.groupby("system")]
        n_tokens = int(max(set.intersection(*of_systems) or budgets))
    ids = table.loc[table["n_tokens"] == n_tokens, "run_id"].tolist()
    if len(ids) < 2:
        raise ConfigError(
            f"n_tokens={n_tokens}: {len(ids)} of the runs have this budget, and a pair takes two; there are "
            + ", ".join(f"{n} ({count} runs)" for n, count in table["n_tokens"].value_counts().sort_index().items())
        )
    return n_tokens, ids


def choose_baseline(compared: pd.DataFrame, asked: str | None, swept: bool) -> str:
    if asked is None:
        scores = compared.get("ir_score", pd.Series(dtype=float)).dropna()
        row = compared.index.get_loc(scores.idxmax()) if swept and len(scores) else 0
        return str(compared["run_id"].iloc[row])
    named = compared[(compared["run"] == asked) | (compared["system"] == asked)]
    if named.empty:
        named = compared[compared["run_id"].str.startswith(asked)]
    if len(named) != 1:
        there = ", ".join(f"{row['run']} ({row['run_id'][:8]})" for row in compared.to_dict("records"))
        many = "none" if named.empty else "several"
        raise ConfigError(f"baseline {asked!r} is {many} of the compared runs; these are {there}")
    return str(named["run_id"].iloc[0])


def read_outcomes(
    runs: Sequence[LoggedRun], readers: Mapping[str, Reader], answers: Sequence[AnswerMeasureInfo]
) -> pd.DataFrame:
    """The tables of the runs' questions, one under the other, without their contexts."""
    columns = ["qid", "query", "answer_reference", "evidence", "answer", "label", "ir_score"]
    columns += [
        CAUSE,
        "judged",
        "stratum",
        *PROBABILITY_COLUMNS,
        "human_label",
        "judge_status",
        "unanswerable",
    ]
    columns += [info.name for info in answers]
    tables = []
    with progress(len(runs), "reading questions", "run") as bar:
        for run in runs:
            try:
                table = readers[run.run_id].table(run.run_id, _TABLE)
            except DataError as error:
                pooling = "; judge.mode=batch writes it once the sweep is pooled (ragauge pool)"
                raise DataError(f"{error}{pooling if 'sweep_id' in run.tags else ''}") from error
            absent = sorted({"qid", "query", "ir_score", "label", "answer"} - set(table))
            if absent:
                raise DataError(f"run {run.run_id}: {_TABLE} has no column {', '.join(absent)}")
            kept = [
                *(c for c in columns if c in table),
                *(c for c in map(str, table) if c.startswith(PREFIX)),
            ]
            kept_rows = table[kept].assign(run_id=run.run_id)
            if "evidence" in kept_rows:  # a list of parts
                kept_rows["evidence"] = kept_rows["evidence"].map(_one_text)
            tables.append(kept_rows)
            bar.update()
    if any(CAUSE not in table for table in tables):  # a job without a funnel has none
        tables = [table.drop(columns=CAUSE, errors="ignore") for table in tables]
    outcomes = pd.concat(tables, ignore_index=True)
    for info in answers:
        known = outcomes.get(info.name, pd.Series(float("nan"), index=outcomes.index))
        outcomes[info.name] = pd.to_numeric(known).astype("float64")
    if "judged" in outcomes:
        outcomes["judged"] = outcomes["judged"].ne(False)
    return outcomes.astype({"qid": "str", "ir_score": "float64", "label": "Int8"})


def _one_text(parts: object) -> object:
    return "\n".join(map(str, parts)) if isinstance(parts, list) else parts


def pair_frame(
    outcomes: pd.DataFrame,
    base: str,
    seed: int,
    answers: Sequence[AnswerMeasureInfo],
    best_of_all: bool,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The frame `Comparison.pairs`, and how many p values Holm's correction counted in each section.

    A section is a family of its own: HEADLINE (IR score, right answers, hallucinations), and each of the
    sections of the measures beside it, of which every job has some that nobody asked for: in one family they
    would hide what the headline shows. A baseline that was chosen for its score has every pair counted, since
    each might have come out as the one to be shown.
    """
    every = compare_pairs(outcomes, "run_id", seed, answers=answers)
    judged = outcomes.loc[outcomes["label"].notna(), "run_id"].unique()
    of_verdicts = every["measure"].isin(["correct", "hallucination", "truthfulness"])
    every = every[~of_verdicts | (every["a"].isin(judged) & every["b"].isin(judged))]
    with_base = every["a"].eq(base) | every["b"].eq(base)
    counted = (every if best_of_all else every[with_base]).dropna(subset=["p"])
    section = counted["measure"].map({info.name: info.section for info in answers}).fillna(HEADLINE)
    families = dict(iter(counted.groupby(section, sort=False)))
    corrected = [pd.Series(holm(family["p"].to_numpy()), index=family.index) for family in families.values()]
    p_holm = pd.concat(corrected) if corrected else pd.Series(dtype=float)
    shown = every[with_base].assign(p_holm=p_holm)
    shown = less_base(shown, base, outcomes)
    columns = ["run_id", "measure", "difference", "lo", "hi", "p", "p_holm", "n"]
    return shown[columns], {name: len(family) for name, family in families.items()}


def less_base(pairs: pd.DataFrame, base: str, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Pairs with the baseline as differences of a `run_id` less the baseline, in the order of the runs."""
    turned = pairs["a"].eq(base)
    pairs = pairs.assign(run_id=pairs["b"].where(turned, pairs["a"]))
    # 0 less x, and not -x: no difference is not minus nothing.
    pairs.loc[turned, ["lo", "hi"]] = 0.0 - pairs.loc[turned, ["hi", "lo"]].to_numpy()
    for column in {"difference", "judge_difference"} & set(pairs):
        pairs.loc[turned, column] = 0.0 - pairs.loc[turned, column]
    order = {run_id: i for i, run_id in enumerate(outcomes["run_id"].unique())}
    return pairs.sort_values("run_id", key=lambda ids: ids.map(order), kind="stable", ignore_index=True)


def with_differences(outcomes: pd.DataFrame, base: str, answers: Sequence[AnswerMeasureInfo]) -> pd.DataFrame:
    reference = outcomes[outcomes["run_id"] == base].set_index("qid")["ir_score"]
    difference = outcomes["ir_score"] - outcomes["qid"].map(reference)
    columns = ["run_id", "qid", "query", "answer_reference", "ir_score", "label", "answer"]
    columns += [info.name for info in answers]
    kept = outcomes[[c for c in columns if c in outcomes]]
    return kept.assign(ir_score_difference=difference.where(outcomes["run_id"] != base))
