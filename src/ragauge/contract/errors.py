"""The errors that a user can act on, each with the exit code it ends a command with."""

from __future__ import annotations


class RagaugeError(Exception):
    """An error whose message is for the user: it names the file, row or key and what is allowed."""

    exit_code = 1


class ConfigError(RagaugeError):
    """A key, option or value of the configuration that cannot be used."""

    exit_code = 2


class DataError(RagaugeError):
    """A file, row or frame that does not hold what it must."""

    exit_code = 2


class GateError(RagaugeError):
    """A quality gate that was asked for and not met."""

    exit_code = 3


class MissingError(RagaugeError):
    """More answers or verdicts are missing than `max_missing_share` allows."""

    exit_code = 4


class TrackingError(RagaugeError):
    """MLflow stopped answering while a run was open; what was computed is in the store."""
