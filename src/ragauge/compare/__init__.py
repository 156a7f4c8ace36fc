"""Compares runs: their metrics, their differences by topic, and the topics that differ most."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.compare._metrics import choose_metrics
    from ragauge.compare._settings import differing, run_table
    from ragauge.compare._sources import SourceRuns, check_same_topics, measured_by, members, read_outcomes
    from ragauge.compare._topics import most_different
    from ragauge.compare.comparison import Comparison, compare, found_of, latex, markdown, runs_csv, text, topics_csv

__all__ = [
    "Comparison", "SourceRuns", "check_same_topics", "choose_metrics", "compare", "differing", "found_of", "latex",
    "markdown", "measured_by", "members", "most_different", "read_outcomes", "run_table", "runs_csv", "text",
    "topics_csv",
]  # fmt: skip

__getattr__ = lazily(__name__)
