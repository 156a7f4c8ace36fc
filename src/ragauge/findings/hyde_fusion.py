"""The published tables of a study of HyDE and RAG-Fusion, to be set beside one's own on its questions.

500 validation questions of RAG Mini BioASQ over 13,314 passages; P, R and F1 at 1 to 5, where F1 is the mean
of the questions' F1. `simple` is an encoder that was tuned on the data (BGE-base); HyDE (passages by a
biomedical language model) and RAG-Fusion (a T5 paraphraser, reciprocal ranks) have the same encoder untuned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PRESET = "hyde_fusion"

_TABLES: Mapping[str, Mapping[str, Sequence[float]]] = {
    "simple, tuned encoder": {
        "p": (0.87, 0.679, 0.582667, 0.5185, 0.4556),
        "r": (0.326167, 0.495167, 0.629333, 0.738833, 0.805167),
        "f1": (0.4678, 0.562867, 0.594533, 0.599119, 0.572635),
    },
    "HyDE": {
        "p": (0.644, 0.507, 0.426, 0.382, 0.338),
        "r": (0.241667, 0.369333, 0.460167, 0.545667, 0.599667),
        "f1": (0.346467, 0.4198, 0.434552, 0.441619, 0.425206),
    },
    "RAG-Fusion": {
        "p": (0.862, 0.669, 0.576667, 0.5245, 0.4752),
        "r": (0.322, 0.485333, 0.620167, 0.743167, 0.838333),
        "f1": (0.4624, 0.553, 0.58741, 0.604833, 0.597024),
    },
    "RAG-Fusion, tuned reranker": {"f1": (0.508, 0.577, 0.602, 0.618, 0.613)},
}


def published_rankings(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """{name: {metric: value}} of the study's tables, where the jobs have its preset; {} elsewhere.

    The metrics are named as MLflow's are: p_at_1 to f1_at_5.
    """
    if any(record["choices"].get("experiment") != PRESET for record in records):
        return {}
    return {
        f"{name} (published)": {
            f"{measure}_at_{k}": value for measure, values in table.items() for k, value in enumerate(values, 1)
        }
        for name, table in _TABLES.items()
    }
