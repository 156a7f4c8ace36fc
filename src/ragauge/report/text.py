"""What a sweep prints on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import column_label
from ragauge.contract.console import table
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.visible import visible
from ragauge.estimate import Zones, summary


def leaderboard_text(
    board: pd.DataFrame, n_tokens: int, judged: bool, answers: Sequence[AnswerMeasureInfo] = ()
) -> str:
    """The leaderboard as a table of characters; `judged` adds the verdicts' columns, `answers` their own."""
    rows = []
    for row in board.to_dict("records"):
        cells = {
            "system": visible(row["system"], one_line=True),
            "IR score": f"{row['ir_score']:.3f}" + ("*" if row["ir_score_same_as_best"] else " "),
            "95 %": f"{row['ir_score_lo']:.3f}-{row['ir_score_hi']:.3f}",
        }
        if judged:
            cells |= {
                "right": f"{row['correct_share']:.1%}"
                + ("*" if row["correct_same_as_best"] is True else " "),
                "95 % ": f"{row['correct_share_lo']:.1%}-{row['correct_share_hi']:.1%}",
                "lack": f"{row['judge_share_1']:.1%}",
                "hallucination": f"{row['hallucination_share']:.1%}"
                + ("*" if row["hallucination_same_as_best"] is True else " "),
                "95 %  ": f"{row['hallucination_share_lo']:.1%}-{row['hallucination_share_hi']:.1%}",
                "incomplete": f"{row['judge_share_3']:.1%}",
                "no verdict": f"{row['judge_share_missing']:.1%}",
            }
        for info in answers:
            cells[column_label(info)] = _measured(row, info)
        rows.append(cells)
    # The names and their values; a mark follows a value, so that these columns stand to the left.
    lines = [list(rows[0]), *(list(cells.values()) for cells in rows)]
    right = [at for at, name in enumerate(rows[0]) if name not in ("IR score", "right", "hallucination")]
    shown = table(lines, right, gap=1)
    topics, seen = int(board["n_topics"].max()), int(board["n_judged"].min())
    sampled = f", {seen} of them judged (shares of all: prediction-powered)" if seen < topics else ""
    return (
        f"\nLeaderboard at N = {n_tokens} tokens, {topics} topics{sampled}\n{shown}\n"
        + ("↑ higher is better, ↓ lower is better; " if answers else "")
        + "* not distinguishable from the best (paired tests over topics, Holm's correction, 5 %)"
    )


def _measured(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> str:
    """An answer measure's mean, its mark and its interval."""
    spec = ".1%" if info.unit == "share" else ".3f"
    value, lo, hi = (row[info.name + end] for end in ("", "_lo", "_hi"))
    if value != value:
        return "–"
    mark = "*" if row[f"{info.name}_same_as_best"] is True else " "
    interval = f" {lo:{spec}}-{hi:{spec}}" if lo == lo else ""
    return f"{value:{spec}}{mark}{interval}"


def _zones_line(zones: Zones) -> str:
    """Both zones with what they promise, or that there is none."""
    told = [
        f"{zone.side} {zone.value:.2f} ({zone.share:.1%} of the answers) at most {zones.alpha:.0%} not {says}"
        if zone.n
        else f"none for {says}"
        for zone, says in ((zones.right, "right"), (zones.lack, "lack"))
    ]
    return f"zones ({zones.confidence:.0%} confidence): {'; '.join(told)}"


def thresholds_text(estimates: summary.Estimates) -> str:
    """h, k, the zones and the predictor in four lines; all but the zones beside a constant guess."""
    lines = []
    for letter, says, t in (
        ("h", "lack of information below", estimates.thresholds.h),
        ("k", "right above", estimates.thresholds.k),
    ):
        note = f"; degenerate: says “{t.degenerate}”" if t.degenerate else ""
        verdict = "useful" if t.useful else "not shown to be useful"
        lines.append(
            f"{letter} = {t.value:.3f} ({says}; not rejected {t.set_min:.3f}-{t.set_max:.3f}; on unseen "
            f"topics {100 * t.gain.value:+.1f} points over a constant guess, 95 % {100 * t.gain.lo:+.1f} to "
            f"{100 * t.gain.hi:+.1f}: {verdict}{note})"
        )
    lines.append(_zones_line(estimates.zones))
    e = estimates.validation.estimates
    lines.append(
        f"predictor, on unseen topics: AUC right {e['auc_correct'].value:.3f}, "
        f"AUC lack {e['auc_lack'].value:.3f}, log loss {e['log_loss'].value:.3f} "
        f"(base rate {e['log_loss_base'].value:.3f})"
    )
    return "\n".join(lines)
