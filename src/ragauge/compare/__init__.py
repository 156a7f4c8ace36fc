"""Runs side by side: their metrics, their differences topic by topic, and where they differ most."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.compare._checks import check_same_topics, measured_by
    from ragauge.compare._csv import runs_csv, topics_csv
    from ragauge.compare._found import Found, members
    from ragauge.compare._latex import latex
    from ragauge.compare._markdown import markdown
    from ragauge.compare._metrics import choose_metrics
    from ragauge.compare._pairs import read_outcomes
    from ragauge.compare._settings import differing, run_table
    from ragauge.compare._text import text
    from ragauge.compare.comparison import Comparison, compare, most_different

__all__ = [
    "Comparison", "Found", "check_same_topics", "choose_metrics", "compare", "differing", "latex", "markdown",
    "measured_by", "members",
    "most_different", "read_outcomes", "run_table", "runs_csv", "text", "topics_csv",
]  # fmt: skip

__getattr__ = lazily(__name__)
