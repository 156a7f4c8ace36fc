"""Figures and the one-file report of a sweep."""

from ragauge.report.drawing import LINE_COLOURS, save
from ragauge.report.figures import (
    ir_score_by_n,
    judge_shares,
    reliability,
    sorted_scores,
    transfer,
)
from ragauge.report.foresight import foresight_figure, foresight_text
from ragauge.report.html import ReportContent, write_report
from ragauge.report.pareto import frontiers
from ragauge.report.recorded import RecordedContent, foreseen, write_recorded
from ragauge.report.robustness import abilities_figure, robustness_text
from ragauge.report.text import (
    best_text,
    budgets_text,
    detectable_text,
    groups_text,
    leaderboard_text,
    thresholds_text,
)
from ragauge.report.topics import contexts_of, read_topics, worth_reading

__all__ = [
    "LINE_COLOURS",
    "RecordedContent",
    "ReportContent",
    "abilities_figure",
    "best_text",
    "budgets_text",
    "contexts_of",
    "detectable_text",
    "foreseen",
    "foresight_figure",
    "foresight_text",
    "frontiers",
    "groups_text",
    "ir_score_by_n",
    "judge_shares",
    "leaderboard_text",
    "read_topics",
    "reliability",
    "robustness_text",
    "save",
    "sorted_scores",
    "thresholds_text",
    "transfer",
    "worth_reading",
    "write_recorded",
    "write_report",
]
