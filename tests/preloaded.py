"""What `python run.py` imports sooner or later; imported once by the process that commands are forked from.

Nothing is run here that would start a thread, for a fork would lose it.
"""

from __future__ import annotations

import contextlib
import importlib

# skops looks for functions in every module that is loaded: first, where few are.
_MODULES = [
    "skops.io", "hydra.main", "mlflow.sklearn", "mlflow.store.tracking.sqlalchemy_store",
    "matplotlib.backends.backend_agg", "langchain_ollama", "langchain_openai", "ir_measures", "pyterrier",
    "scipy.sparse", "faiss", "numba", "sentence_transformers", "onnxruntime", "ragauge.commands.callbacks",
    "ragauge.compare", "ragauge.experiment.job", "ragauge.experiment.stages.pipeline",
    "ragauge.experiment.sweep.pooling", "processes",
]  # fmt: skip
for name in _MODULES:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
with contextlib.suppress(ImportError):
    importlib.import_module("made_database").copy_where_told()
