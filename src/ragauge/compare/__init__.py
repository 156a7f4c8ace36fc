"""Runs side by side: their metrics, their differences topic by topic, and where they differ most."""

from ragauge.compare._csv import runs_csv, topics_csv
from ragauge.compare._latex import latex
from ragauge.compare._markdown import markdown
from ragauge.compare._metrics import choose_metrics
from ragauge.compare._text import text
from ragauge.compare.comparison import Comparison, compare, most_different

__all__ = [
    "Comparison", "choose_metrics", "compare", "latex", "markdown", "most_different", "runs_csv", "text",
    "topics_csv",
]  # fmt: skip
