"""What is computed over comparable jobs: estimates, leaderboard, transfer, curves and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import report
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.diagnose.foresight import foresight
from ragauge.estimate import (
    Agreement,
    asked,
    compare_pairs,
    leaderboard,
    ppi_shares,
    share_by_zone,
    summary,
)
from ragauge.estimate.best import best_sets
from ragauge.estimate.curves import Budgets, budgets
from ragauge.estimate.human import human_agreement, human_pairs, human_shares
from ragauge.estimate.outcomes import fit_rows, with_classes
from ragauge.estimate.plan import detectable_differences
from ragauge.estimate.transfer import Transfer, leave_one_out
from ragauge.experiment.outcomes.slicing import slice_tables
from ragauge.experiment.sweep.contrasts import ablation_of, chunk_sizes, gain_of_retrieval, score_against_cost
from ragauge.experiment.sweep.jobs import Sweep, systems_of
from ragauge.experiment.sweep.losses import losses_of
from ragauge.experiment.sweep.robustness import abilities_of
from ragauge.report import study
from ragauge.report.losses import figures_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TRANSFER_GROUPS = ("retriever", "chunker", "llm")
_SHARE_COLUMNS = [*(f"judge_share_{c}" for c in JUDGE_CLASSES), "judge_share_missing"]


def contents(groups: Sequence[Sweep]) -> list[report.ReportContent]:
    """What is computed over each group of a sweep, with the transfer between groups of different datasets."""
    found = [pooled(sweep) for sweep in groups]
    for means in dict.fromkeys(sweep.means for sweep in groups):
        at = [i for i, sweep in enumerate(groups) if sweep.means == means]
        moved = _transfer_over_datasets([groups[i] for i in at])
        if moved is None:
            continue
        for i in at:
            found[i] = replace(
                found[i],
                transfers={**found[i].transfers, "dataset": moved},
                figures={**found[i].figures, "transfer_dataset": report.transfer(moved.table)},
            )
    return [
        replace(content, others=[other.group for other in groups if other is not sweep])
        for content, sweep in zip(found, groups, strict=True)
    ]


def pooled(sweep: Sweep) -> report.ReportContent:
    """Everything that is computed over comparable jobs: what their sweep's run logs and its report shows."""
    n_boot, seed = int(sweep.records[0]["bootstrap"]), int(sweep.records[0]["seed"])
    at_n = sweep.outcomes[sweep.outcomes["n_tokens"] == sweep.n_tokens]
    judged = fit_rows(sweep.outcomes)
    first = sweep.records[0]
    estimates = summary.estimate(judged, n_boot, seed, **first["estimate"], zones=first.get("zones"))
    pairs = compare_pairs(at_n, "system", n_boot, seed, answers=sweep.answer_measures)
    best = best_sets(at_n, "system", seed, answers=sweep.answer_measures)
    board = leaderboard(at_n, "system", n_boot, seed, best=best, answers=sweep.answer_measures)
    over_n = budgets(sweep.outcomes, seed=seed)
    moved = _transfers(sweep, n_boot, seed) if estimates.model is not None else {}
    costly = score_against_cost(sweep)
    target = first.get("foresight", {}).get("target")
    robust, lost = abilities_of(sweep), losses_of(sweep)
    foreseen = foresight(at_n, sweep.answer_measures, target, n_boot, seed)
    drawn = {
        "pareto": report.frontiers(costly),
        "foresight": None if foreseen is None else report.foresight_figure(foreseen),
        "robustness": None if robust is None else report.abilities_figure(robust),
        **figures_of(lost, board["system"].tolist()),
    }
    systems = systems_of(sweep.records)
    of_job = {(s, int(r["n_tokens"])): r for s, r in zip(systems, sweep.records, strict=True)}
    return report.ReportContent(
        sweep_id=sweep.sweep_id,
        experiment=sweep.experiment,
        records=sweep.records,
        systems=systems,
        failed=sweep.failed,
        n_tokens=sweep.n_tokens,
        board=board,
        answers=sweep.answer_measures,
        pairs=pairs,
        curves=score_curves(sweep),
        estimates=estimates,
        zones=share_by_zone(judged, estimates.thresholds.h.value, estimates.thresholds.k.value, n_boot, seed),
        transfers=moved,
        sampled=_by_system(at_n, _sampled),
        agreement=_agreement(sweep, n_boot, seed),
        **_by_people(at_n),
        topics=report.read_topics(report.worth_reading(sweep.outcomes), of_job),
        figures=_figures(sweep, estimates, board, moved, over_n)
        | {name: figure for name, figure in drawn.items() if figure},
        group=sweep.group,
        notes=sweep.notes,
        floors=floor_curves(sweep),
        detectable=detectable_differences(at_n, pairs, answers=sweep.answer_measures),
        best=best,
        budgets=over_n,
        ablation=ablation_of(sweep, n_boot, seed),
        gains=gain_of_retrieval(sweep, n_boot, seed),
        chunk_sizes=chunk_sizes(sweep),
        pareto=costly,
        slices=slice_tables(at_n, board, first, sweep.answer_measures),
        foresight=foreseen,
        robustness=robust,
        losses=lost,
    )


def _transfers(sweep: Sweep, n_boot: int, seed: int) -> dict[str, Transfer]:
    """Leave one retriever, chunker or LLM out, where the jobs have several."""
    rows = fit_rows(sweep.outcomes)
    return {
        by: leave_one_out(rows, by, **sweep.records[0]["estimate"], n_boot=n_boot, seed=seed)
        for by in TRANSFER_GROUPS
        if rows.loc[rows["label"].notna(), by].nunique() > 1
    }


def _transfer_over_datasets(groups: Sequence[Sweep]) -> Transfer | None:
    """Leave one dataset out of groups that measured by the same means; None where under two have verdicts."""
    judged = [sweep for sweep in groups if fit_rows(sweep.outcomes)["label"].notna().any()]
    if len(judged) < 2:
        return None
    # Topics of two collections are different ones, whatever their qids.
    rows = pd.concat(
        [
            (rows := fit_rows(sweep.outcomes)).assign(
                dataset=sweep.dataset, qid=sweep.dataset + "/" + rows["qid"].astype(str)
            )
            for sweep in judged
        ],
        ignore_index=True,
    )
    first = judged[0].records[0]
    return leave_one_out(rows, "dataset", **first["estimate"], n_boot=int(first["bootstrap"]), seed=int(first["seed"]))


def _by_system(rows: pd.DataFrame, shares: Callable[[pd.DataFrame], pd.DataFrame | None]) -> pd.DataFrame | None:
    """The shares of every system one below the other, with a column system; None where none has any."""
    found = {system: shares(part) for system, part in rows.groupby("system", sort=False)}
    known = [frame.assign(system=system) for system, frame in found.items() if frame is not None]
    return pd.concat(known, ignore_index=True) if known else None


def _sampled(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Shares of all topics from the few that were judged; None where all were."""
    rows = with_classes(rows)
    return ppi_shares(rows) if len(asked(rows)) < len(rows) else None


def _by_people(rows: pd.DataFrame) -> dict[str, Any]:
    """Shares and differences as people would judge them, and why there are none where labels do not serve."""
    if "human_label" not in rows:
        return {"human_shares": None}
    refused: list[str] = []

    def told(estimate: Callable[[pd.DataFrame], pd.DataFrame | None], what: str) -> Any:
        def found(part: pd.DataFrame) -> pd.DataFrame | None:
            try:
                return estimate(part)
            except DataError as error:
                refused.append(f"{what}{part['system'].iloc[0] if what else ''}: {error}".lstrip(": "))
                return None

        return found

    shares = _by_system(rows, told(human_shares, "no shares for "))
    pairs = told(human_pairs, "")(rows)
    return {"human_shares": shares, "human_pairs": pairs, "human_refused": tuple(refused)}


def _agreement(sweep: Sweep, n_boot: int, seed: int) -> Agreement | None:
    """The judge beside people, over all jobs; None where nobody labelled an answer."""
    if "human_label" not in sweep.outcomes or sweep.outcomes["human_label"].isna().all():
        return None
    return human_agreement(sweep.outcomes, n_boot, seed, ("qid", "system", "n_tokens"))


def score_curves(sweep: Sweep) -> dict[str, dict[int, float]]:
    """IR score against the budget by system, as far as the largest budget of its jobs."""
    curves: dict[str, dict[int, float]] = {}
    for record, system in zip(sweep.records, systems_of(sweep.records), strict=True):
        curve = {int(n): float(value) for n, value in record["ir_score_at_n"].items()}
        curves[system] = curves.get(system, {}) | curve
    return curves


def floor_curves(sweep: Sweep) -> dict[str, dict[int, float]]:
    """Floor of the IR score against the budget, {"unrelated text": {n_tokens: floor}}; {} where unknown.

    Where jobs have different floors (another chunker, say), each with the first system that it is of.
    """
    curves: list[tuple[str, dict[int, float]]] = []
    for record, system in zip(sweep.records, systems_of(sweep.records), strict=True):
        curve = {int(n): float(value) for n, value in record.get("ir_score_floor_at_n", {}).items()}
        if not curve:
            continue
        for _, known in curves:
            if all(known.get(n, value) == value for n, value in curve.items()):
                known.update(curve)
                break
        else:
            curves.append((system, curve))
    alone = len(curves) == 1
    return {"unrelated text" if alone else f"unrelated text, {system}": curve for system, curve in curves}


def _figures(
    sweep: Sweep,
    estimates: summary.Estimates,
    board: pd.DataFrame,
    transfers: Mapping[str, Transfer],
    over_n: Budgets | None = None,
) -> dict[str, Figure]:
    """The sweep's figures by name; those of the judge classes only where there are verdicts."""
    hotpot = sweep.records[0]["choices"]["dataset"] == "hotpotqa"
    bands = None if over_n is None else over_n.band_of("ir_score")
    published_scores = study.IR_SCORE if hotpot else None
    curves = score_curves(sweep)
    figures = {}
    if any(curves.values()):
        drawn = report.ir_score_by_n(curves, published_scores, floor_curves(sweep), bands)
        figures["ir_score_by_n"] = drawn
    if estimates.model is None:
        return figures
    shares = board.set_index("system")[_SHARE_COLUMNS]
    if hotpot and sweep.n_tokens == study.JUDGE_SHARES_N_TOKENS:
        published = pd.DataFrame(
            {f"{s}, study": [*study.JUDGE_SHARES[s], 0.0] for s in shares.index if s in study.JUDGE_SHARES},
            index=_SHARE_COLUMNS,
        ).T
        shares = pd.concat([shares, published])
    figures["judge_shares"] = report.judge_shares(shares, f"Judge classes at N = {sweep.n_tokens} tokens")
    title = "All systems and budgets of the sweep, and its thresholds"
    figures["sorted_scores"] = report.sorted_scores(
        fit_rows(sweep.outcomes), estimates.thresholds, title, estimates.zones
    )
    curve = estimates.validation.reliability
    figures["reliability"] = report.reliability(
        {"P(5, right)": curve[curve["n"] > 0]}, "Out-of-fold reliability of the predictor"
    )
    for by, moved in transfers.items():
        figures[f"transfer_{by}"] = report.transfer(moved.table)
    return figures
