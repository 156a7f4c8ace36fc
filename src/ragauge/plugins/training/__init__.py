"""`ragauge train` (docs/training.md): encoders, rerankers, judges (docs/ares.md) and predictors."""
