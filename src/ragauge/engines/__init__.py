"""Config group `engine`: where the work inside a stage runs. Results are the same everywhere."""

from ragauge.contract.engine import LocalEngine
from ragauge.engines.ray import RayEngine

__all__ = ["LocalEngine", "RayEngine"]
