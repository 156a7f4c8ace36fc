"""A job's numbers and the leaderboard as a terminal shows them, and the sentences around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.groups import CALLS
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.visible import table, visible

if TYPE_CHECKING:
    from ragauge.contract.families import Families
    from ragauge.estimate.best import BestSystems


_RANKINGS = 3  # columns of measures of rankings on the terminal
_SYSTEM = "system"
_PAIRS = {"ir_score": "IR score", "correct": "right", "hallucination": "hallucination"}
_WIDTH = 100  # characters of the table of answer measures


def job_line(name: str, values: Mapping[str, float]) -> str:
    """The numbers of a job in a line: IR score, verdicts or their prediction, money, time."""
    parts = [f"IR score {values['ir_score']:.3f}"] if "ir_score" in values else ["no IR score"]
    if values.get("judge_share_missing", 1) < 1:
        parts += [
            f"right {values['correct_share']:.0%}",
            f"lack {values['judge_share_1']:.0%}",
            f"hallucination {values['hallucination_share']:.0%}",
        ]
    if "predicted_correct_share" in values:
        parts.append(
            f"predicted right {values['predicted_correct_share']:.0%}, "
            f"hallucination {values['predicted_hallucination_share']:.0%}"
        )
    cost = sum(values.get(f"{prefix}cost_usd", 0.0) for prefix in CALLS)
    if cost > 0:
        parts.append(f"{cost:.4f} USD")
    parts.append(f"{values['seconds_total']:.1f} s")
    return f"{name:<32} " + "  ".join(parts)


def leaderboard_text(
    board: pd.DataFrame, n_tokens: int, judged: bool, answers: Sequence[AnswerMeasureInfo] = ()
) -> str:
    """The leaderboard as tables of characters; `judged` adds the verdicts' columns.

    Without IR scores there is no column of them; of unanswerable topics there is the share of rejections.
    `answers` stand below in a table of their own, or several, of 100 characters at most unless one system's
    name and one measure need more. Measures of rankings have columns, three of them, where there is nothing
    else to rank by.
    """
    scored = board["ir_score"].notna().any()
    shown = besides_rankings(answers)
    answers = shown if scored or judged or shown else answers[:_RANKINGS]
    rows, measured = [], []
    records = board.to_dict("records")
    for row in records:
        cells = {_SYSTEM: visible(row["system"], one_line=True)}
        if scored:
            best = row["ir_score_in_best_set"] is True
            cells |= {
                "IR score": f"{row['ir_score']:.3f}" + ("*" if best else " "),
                "95 %": f"{row['ir_score_lo']:.3f}-{row['ir_score_hi']:.3f}",
            }
        if judged:
            cells |= {
                "right": _marked(row, "correct"),
                "95 % ": _interval(row, "correct_share"),
                "lack": _percent(row["judge_share_1"]),
                "hallucination": _marked(row, "hallucination"),
                "95 %  ": _interval(row, "hallucination_share"),
                "incomplete": _percent(row["judge_share_3"]),
                "no verdict": _percent(row["judge_share_missing"]),
            }
        if "rejection_share" in row:
            cells |= {"rejected": _percent(row["rejection_share"]), "95 %   ": _interval(row, "rejection_share")}
        rows.append(cells)
        measured.append([cells[_SYSTEM], *(_measured(row, info) for info in answers)])
    # A mark follows a value, so that these columns stand to the left.
    right = [at for at, name in enumerate(rows[0]) if name not in ("IR score", "right", "hallucination")]
    lines = [list(rows[0]), *(list(cells.values()) for cells in rows)]
    listed = [table(lines, right, gap=1)] if len(rows[0]) > 1 else []
    if answers:
        listed += _in_blocks([[_SYSTEM, *map(column_label, answers)], *measured])
    topics, seen = int(board["n_topics"].max()), int(board["n_judged"].min())
    sampled = seen < int(board["n_classed"].max())
    told = f", {seen} of them judged (shares of all: prediction-powered)" if sampled else ""
    if not listed:
        names = ", ".join(cells[_SYSTEM] for cells in rows)
        return f"\nNo leaderboard of {names}: no IR score, no verdict, no measure of answers; {topics} topics"
    return (
        f"\nLeaderboard at N = {n_tokens} tokens, {topics} topics{told}\n"
        + "\n\n".join(listed)
        + "\n"
        + ("↑ higher is better, ↓ lower is better; " if answers else "")
        + ("of: the topics that have a value; " if any(valued(r, i) for r in records for i in answers) else "")
        + "* may be the best: with 95 % confidence the best system is among these (max-t over topics)"
    )


def _in_blocks(lines: Sequence[Sequence[str]]) -> list[str]:
    """Tables of these columns, as many in each as _WIDTH has room for, behind the first one."""
    sizes = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    blocks: list[list[int]] = [[]]
    for at, size in enumerate(sizes[1:], 1):
        if blocks[-1] and sizes[0] + sum(sizes[other] for other in blocks[-1]) + size > _WIDTH:
            blocks.append([])
        blocks[-1].append(at)
    return [table([[line[at] for at in (0, *block)] for line in lines], [0]) for block in blocks]


def detectable_text(detectable: pd.DataFrame | None, answers: Sequence[AnswerMeasureInfo] = ()) -> str:
    """A line of the smallest differences that the sweep's tests could see; empty without a pair.

    Those in IR score, right answers and hallucinations; where there are none of these, in `answers`.
    """
    if detectable is None or detectable.empty:
        return ""
    names = _PAIRS
    if not detectable["measure"].isin(list(names)).any():
        names = {info.name: info.label for info in besides_rankings(answers) or answers}
    parts = []
    for row in detectable[detectable["measure"].isin(list(names))].to_dict("records"):
        points = row["unit"] == "share" and row["measure"] != "ir_score"
        worst, median = (
            "none" if value != value else f"{100 * value:.1f} points" if points else f"{value:.3f}"
            for value in (row["difference"], row["difference_median"])
        )
        one = worst == median
        parts.append(f"{names[row['measure']]} {worst}" + ("" if one else f" (median pair {median})"))
    return f"smallest difference seen with a power of 80 %, of the pair that varies most: {', '.join(parts)}"


def best_text(best: BestSystems) -> str:
    """A line that says how much of the top scores is expected to be chance; nothing for one system."""
    found = best.optimism_at_top(["ir_score", "correct", "hallucination"])
    words = {
        "ir_score": "{:.3f} of the best IR score",
        "correct": "{:.1%} of the most right answers",
        "hallucination": "{:.1%} of the fewest hallucinations",
    }
    shown = [words[measure].format(value) for measure, value in found.items()]
    return f"part of the top score that is expected to be chance, at most: {', '.join(shown)}" if shown else ""


def families_text(families: Families, pairs: pd.DataFrame, answers: Sequence[AnswerMeasureInfo]) -> str:
    """A line on which tests are corrected together and which measures are primary; empty without a pair.

    pairs: of `compare_pairs`.
    """
    tests = int(pairs["p"].notna().sum())
    if not tests:
        return ""
    names = {info.name: info.label for info in answers} | _PAIRS
    titles = {measure: names[measure] for measure in map(str, pairs["measure"].unique())}
    if families.family == "all":
        counted = f"counts all {tests} paired tests of {len(titles)} measures together"
    else:
        counted = "counts the pairs of each measure by itself"
        if (chance := 1 - 0.95 ** len(titles)) > 0.1:
            counted += (
                f": of {len(titles)} measures, some one calls equal systems different in up to {chance:.0%} of sweeps "
                "(report.family=all: 5 %)"
            )
    return f"Holm's correction {counted}; {families.in_words(titles)}"


def _percent(share: float) -> str:
    """A share, a dash where nothing was judged."""
    return "–" if share != share else f"{share:.1%}"


def _interval(row: Mapping[Any, Any], name: str) -> str:
    lo, hi = row[f"{name}_lo"], row[f"{name}_hi"]
    return "" if lo != lo else f"{lo:.1%}-{hi:.1%}"


def _marked(row: Mapping[Any, Any], measure: str) -> str:
    """The share of right answers or hallucinations, with its mark."""
    return _percent(row[f"{measure}_share"]) + ("*" if row[f"{measure}_in_best_set"] is True else " ")


def _measured(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> str:
    """An answer measure's mean, its mark and its interval."""
    spec = ".1%" if info.unit == "share" else ".3f"
    value, lo, hi = (row[info.name + end] for end in ("", "_lo", "_hi"))
    if value != value:
        return "–"
    mark = "*" if row[f"{info.name}_in_best_set"] is True else " "
    interval = f" {lo:{spec}}-{hi:{spec}}" if lo == lo else ""
    return " ".join(filter(None, (f"{value:{spec}}{mark}{interval}", valued(row, info))))


def valued(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> str:
    """`of 70`, the number of topics that have a value; empty where all that can have one do.

    An unanswerable topic, and one without a reference answer, has none in any system.
    """
    n = round((1 - row.get(f"{info.name}_missing", 0.0)) * row["n_topics"])
    return f"of {n}" if n < row["n_classed"] else ""


def common_text(pairs: pd.DataFrame, topics: int, answers: Sequence[AnswerMeasureInfo]) -> str:
    """On how many topics pairs of systems are compared by measures of answers; empty where it is all of them.

    pairs: of `compare_pairs`. Measures of rankings are left out.
    """
    parts = []
    for info in besides_rankings(answers):
        n = pairs.loc[pairs["measure"] == info.name, "n"]
        if n.any() and n.min() < topics:  # of a measure of one system there is no pair
            parts.append(f"{info.label} {n.min()}" + (f" to {n.max()}" if n.max() > n.min() else ""))
    return f"of {topics} topics, two systems are compared on those that both have: {', '.join(parts)}" if parts else ""
