"""MLflow's own pages: traces with scores and costs, evaluation runs, scorers."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.plugins.mlflow_pages.scorers import scorers

__all__ = ["scorers"]

__getattr__ = lazily(__name__)
