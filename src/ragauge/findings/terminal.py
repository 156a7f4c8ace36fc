"""A job's numbers and the leaderboard as terminal text, with sentences around it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.families import Families
from ragauge.contract.groups import CALLS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import CORRECT, HALLUCINATION, HEADLINES, IR_SCORE, NO_VERDICT, REJECTION
from ragauge.contract.visible import table, visible

WIDTH = 80  # columns of what a sweep prints at its end
NAME_WIDTH = 31  # columns of a short job name
_RANKINGS = 3  # columns of measures of rankings on the terminal
_SYSTEM = "system"
_HEADLINES = {name: metric.label for name, metric in HEADLINES.items()}


def job_line(name: str, values: Mapping[str, float], width: int = NAME_WIDTH) -> str:
    """A job's numbers in a line: IR score, verdicts or predicted ones, money, time; its name in so many columns."""
    scored, of = int(values.get("ir_score_topics", 0)), scorable_topics(values)
    parts = [f"{IR_SCORE.label} {values['ir_score']:.3f}" if "ir_score" in values else f"no {IR_SCORE.label}"]
    parts[0] += f" of {scored} of {of} topics" if 0 < scored < of else ""
    if values.get("judge_share_missing", 1) < 1:
        parts += [
            f"{CORRECT.label} {values['correct_share']:.0%}",
            f"lack {values['judge_share_1']:.0%}",
            f"{HALLUCINATION.label} {values['hallucination_share']:.0%}",
        ]
        parts += [f"{NO_VERDICT.label} {share:.0%}"] if (share := values.get("judge_share_missing", 0.0)) > 0 else []
    if "predicted_correct_share" in values:
        parts.append(
            f"predicted right {values['predicted_correct_share']:.0%}, "
            f"hallucination {values['predicted_hallucination_share']:.0%}"
        )
    cost = sum(values.get(f"{prefix}cost_usd", 0.0) for prefix in CALLS)
    if cost > 0:
        parts.append(f"{cost:.4f} USD")
    parts.append(f"{values['seconds_total']:.1f} s")
    return f"{name:<{width}}  " + "  ".join(parts)


def scorable_topics(values: Mapping[str, float]) -> int:
    """The number of a job's answerable topics with evidence, from its metrics."""
    without = sum(values.get(f"topics_{name}", 0) for name in ("without_evidence", "unanswerable"))
    return int(values.get("topics", 0) - without)


def leaderboard_text(
    board: pd.DataFrame, n_tokens: int, judged: bool, answers: Sequence[AnswerMeasureInfo] = ()
) -> str:
    """The leaderboard as text tables; `judged` adds the verdicts' columns.

    Without IR scores there is no column of them; of unanswerable topics there is the share of rejections. Where
    verdicts are missing, their share has a column. Without verdicts `answers` stand below in a table of their own, or
    several, of 80 characters at most unless one system's name and one measure need more. Measures of
    rankings have columns, three of them, where there is nothing else to rank by.
    """
    has_score = board["ir_score"].notna().any()
    shown = besides_rankings(answers)
    answers = [] if judged else shown if has_score or shown else answers[:_RANKINGS]
    unjudged = judged and bool(board["judge_share_missing"].gt(0).any())
    rows, measured = [], []
    for row in board.to_dict("records"):
        cells = {_SYSTEM: visible(row["system"], one_line=True)}
        if has_score:
            cell = _cell(row, "ir_score", "ir_score", "{:.3f}", "{:.3f}")
            cells[IR_SCORE.label] = cell + (f" {some}" if (some := scored(row)) else "")
        if judged:
            cells[CORRECT.label] = _cell(row, "correct_share", "correct")
            cells["lack"] = _cell(row, "judge_share_1")
            cells[HALLUCINATION.label] = _cell(row, "hallucination_share", "hallucination")
        if unjudged:
            cells[NO_VERDICT.label] = f"{row['judge_share_missing']:.0%}"
        if "rejection_share" in row:
            cells[REJECTION.label] = _cell(row, "rejection_share")
        rows.append(cells)
        measured.append([cells[_SYSTEM], *(_measured(row, info) for info in answers)])
    listed = [table([list(rows[0]), *(list(cells.values()) for cells in rows)])] if len(rows[0]) > 1 else []
    if answers:
        listed += _in_blocks([[_SYSTEM, *map(column_label, answers)], *measured])
    topics, seen = int(board["n_topics"].max()), int(board["n_judged"].min())
    if not listed:
        names = ", ".join(cells[_SYSTEM] for cells in rows)
        return f"\nNo leaderboard of {names}: no IR score, no verdict, no measure of answers; {topics} topics"
    sampled = f", {seen} judged" if seen < int(board["n_classed"].max()) else ""
    heading = f"\nLeaderboard at N = {n_tokens} tokens, {topics} topics{sampled}; 95 % intervals; * may be the best\n"
    return heading + "\n\n".join(listed)


def _in_blocks(lines: Sequence[Sequence[str]]) -> list[str]:
    """Tables of as many columns as fit WIDTH, each after the first column."""
    sizes = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    blocks: list[list[int]] = [[]]
    for at, size in enumerate(sizes[1:], 1):
        if blocks[-1] and sizes[0] + sum(sizes[other] for other in blocks[-1]) + size > WIDTH:
            blocks.append([])
        blocks[-1].append(at)
    return [table([[line[at] for at in (0, *block)] for line in lines]) for block in blocks]


def alike_sentences(label: str, mean: float, retrieve_alike: bool = False) -> list[str]:
    """Sentences: topics with this mean of a measure for all systems cannot distinguish them; and a remedy.

    label: the measure's name in a sentence. retrieve_alike: whether the systems differ in what answers alone.
    """
    if 0.01 < mean < 0.99:
        first = f"have the same {label} on every topic"
        more = "More questions" if retrieve_alike else "A smaller n_tokens or a larger corpus"
    else:
        first = f"score {mean:.3f} in {label}"
        harder = "Harder questions (more steps, rarer words) or a smaller n_tokens"
        more = harder if (mean > 0.5) != (label == "hallucinations") else "Easier questions or a larger n_tokens"
    return [f"All systems {first}: these topics cannot tell them apart.", f"{more} could show a difference."]


def detectable_text(
    detectable: pd.DataFrame, alike: Collection[str] = (), answers: Sequence[AnswerMeasureInfo] = ()
) -> str:
    """A line of the smallest differences that the sweep's tests can detect; empty without a pair.

    Those in IR score, right answers and hallucinations; where there are none of these, in `answers`. A difference
    of 0 in a measure by which all systems are `alike` is none.
    """
    if detectable.empty:
        return ""
    names = _HEADLINES
    if not detectable["measure"].isin(list(names)).any():
        names = {info.name: info.label for info in besides_rankings(answers) or answers}
    parts = []
    for row in detectable[detectable["measure"].isin(list(names))].to_dict("records"):
        if row["measure"] in alike and row["difference"] < 1e-9:
            parts.append(f"{names[row['measure']]} none, since all systems are alike")
            continue
        points = row["unit"] == "share" and row["measure"] != "ir_score"
        worst, median = (
            "none" if value != value else f"{100 * value:.1f} points" if points else f"{value:.3f}"
            for value in (row["difference"], row["difference_median"])
        )
        one = row["comparisons"] == 1
        parts.append(f"{names[row['measure']]} {worst}" + ("" if one else f" (median pair {median})"))
    what = "smallest difference that the tests see with a power of 80 %, for the pair that varies most"
    return f"{what}: {', '.join(parts)}"


def families_text(families: Families, pairs: pd.DataFrame, answers: Sequence[AnswerMeasureInfo]) -> str:
    """A line on families of tests and primary measures; empty without a pair.

    pairs: the frame of `compare_pairs`.
    """
    names = {info.name: info.label for info in answers} | _HEADLINES
    titles = {measure: names[measure] for measure in map(str, pairs["measure"].unique())}
    n = len(titles)
    if not n:
        return ""
    counted = f"counts all {int(pairs['p'].notna().sum())} paired tests of {n} measures together"
    if families.family != "all":
        counted = "counts the pairs of each measure by itself"
        if n > 1:
            counted += f", so that some of {n} measures differs by chance in up to {1 - 0.95**n:.0%} of sweeps"
    return f"Holm's correction {counted}; {families.in_words(titles)}"


def _cell(row: Mapping[Any, Any], name: str, measure: str = "", spec: str = "{:.0%}", end: str = "{:.0f}") -> str:
    """A value with its interval, and * if the system may be the best by the measure; a dash for no value."""
    value, lo, hi = (row.get(f"{name}{suffix}", math.nan) for suffix in ("", "_lo", "_hi"))
    if value != value:
        return "–"
    mark = "*" if measure and row[f"{measure}_in_best_set"] is True else " "
    scale = 100 if spec.endswith("%}") else 1
    interval = f"{end.format(scale * lo)}-{end.format(scale * hi)}" if lo == lo else ""
    return f"{spec.format(value)}{mark} {interval}".rstrip()


def _measured(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> str:
    """An answer measure's mean, mark and interval, and the number of topics if some lack a value."""
    share = info.unit == "share"
    cell = _cell(row, info.name, info.name, "{:.1%}" if share else "{:.3f}", "{:.1f}" if share else "{:.3f}")
    return " ".join(filter(None, (cell, valued(row, info))))


def valued(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> str:
    """The number of topics with a value, as `of 70`; empty if all possible ones have one.

    An unanswerable topic, and one without a reference answer, has none in any system.
    """
    n = round((1 - row.get(f"{info.name}_missing", 0.0)) * row["n_topics"])
    return f"of {n}" if n < row["n_classed"] else ""


def scored(row: Mapping[Any, Any]) -> str:
    """The number of topics with an IR score, as `of 70`; empty if all possible ones have one."""
    n, of = row.get("n_scored", 0), row.get("n_scorable", 0)
    return f"of {n}" if 0 < n < of else ""


def common_text(pairs: pd.DataFrame, topics: int, answers: Sequence[AnswerMeasureInfo], scorable: int = 0) -> str:
    """The number of common topics of pairs by IR score and answer measures; empty if all are common.

    pairs: the frame of `compare_pairs`. topics, scorable: those that can have a class, and an IR score. Measures of
    rankings are left out.
    """
    parts = []
    of = {"ir_score": (IR_SCORE.label, scorable)}
    for name, (label, most) in (of | {i.name: (i.label, topics) for i in besides_rankings(answers)}).items():
        n = pairs.loc[pairs["measure"] == name, "n"]
        if n.any() and n.min() < most:  # of a measure of one system there is no pair
            parts.append(f"{label} {n.min()}" + (f" to {n.max()}" if n.max() > n.min() else ""))
    return f"of {topics} topics, two systems are compared on those that both have: {', '.join(parts)}" if parts else ""
