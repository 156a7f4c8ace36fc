"""ragauge: what was retrieved, what was generated, and how the first predicts the second."""

__version__ = "0.2.0"
