"""The only room that knows MLflow: connections, and writing and reading MLflow runs."""

from ragauge.track._connection import connect, recorded_uri, tracking_uri
from ragauge.track._models import load_predictor, save_predictor
from ragauge.track._reader import LoggedRun, Reader, entries_tag
from ragauge.track._runs import Run, TopicTrace, Tracker, flatten, param_text

__all__ = [
    "LoggedRun",
    "Reader",
    "Run",
    "TopicTrace",
    "Tracker",
    "connect",
    "entries_tag",
    "flatten",
    "load_predictor",
    "param_text",
    "recorded_uri",
    "save_predictor",
    "tracking_uri",
]
