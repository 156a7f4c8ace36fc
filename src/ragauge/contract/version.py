"""The version of this code, which every MLflow run and report names."""

__version__ = "0.2.0"
