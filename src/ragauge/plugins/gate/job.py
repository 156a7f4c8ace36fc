"""Checks a job against its gate: the module of the entry point (`ragauge.experiment.gates`)."""

from ragauge.plugins.gate.checking import check, check_recorded, enforce
from ragauge.plugins.gate.judging import judge_in_looks

__all__ = ["check", "check_recorded", "enforce", "judge_in_looks"]
