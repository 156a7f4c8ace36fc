"""The only room that knows MLflow: connections, and writing and reading MLflow runs."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.track._lost import close_orphans, close_orphans_quietly
    from ragauge.track._reader import LoggedRun, Reader, entries_tag
    from ragauge.track._runs import Run, Tracker, flatten, log_found, param_text
    from ragauge.track.connection import (
        absolute_uri,
        aside,
        connect,
        has_experiment,
        local_database,
        recorded_uri,
        tracking_uri,
    )
    from ragauge.track.feedback import CLASS, LABELS, answer_digest, drawn_answers, labels_of_people
    from ragauge.track.models import is_model_uri, load_predictor, model_folder, save_predictor

__all__ = [
    "CLASS",
    "LABELS",
    "LoggedRun",
    "Reader",
    "Run",
    "Tracker",
    "absolute_uri",
    "answer_digest",
    "aside",
    "close_orphans",
    "close_orphans_quietly",
    "connect",
    "drawn_answers",
    "entries_tag",
    "flatten",
    "has_experiment",
    "is_model_uri",
    "labels_of_people",
    "load_predictor",
    "local_database",
    "log_found",
    "model_folder",
    "param_text",
    "recorded_uri",
    "save_predictor",
    "tracking_uri",
]

__getattr__ = lazily(__name__)
