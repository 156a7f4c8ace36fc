"""The only room that knows MLflow: where runs are kept, and what is written into one and read of one."""

from ragauge.track._connection import absolute_uri, connect, recorded_uri, tracking_uri
from ragauge.track._models import load_predictor, save_predictor
from ragauge.track._reader import LoggedRun, Reader, entries_tag
from ragauge.track._runs import Run, TopicTrace, Tracker, flatten, param_text

__all__ = [
    "LoggedRun",
    "Reader",
    "Run",
    "TopicTrace",
    "Tracker",
    "absolute_uri",
    "connect",
    "entries_tag",
    "flatten",
    "load_predictor",
    "param_text",
    "recorded_uri",
    "save_predictor",
    "tracking_uri",
]
