"""Runs side by side: their metrics, their differences topic by topic, and where they differ most."""

from ragauge.compare.comparison import Comparison, compare
from ragauge.compare.tables import latex, markdown, runs_csv, text, topics_csv

__all__ = ["Comparison", "compare", "latex", "markdown", "runs_csv", "text", "topics_csv"]
