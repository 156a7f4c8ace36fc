"""A sentence-transformers model of a BERT of two layers with random weights and a vocabulary of letters."""

from __future__ import annotations

from pathlib import Path

from tiny_cross_encoder import write_cross_encoder


def write_encoder(folder: Path, dense: bool = False, seed: int = 0) -> Path:
    """The folder of the model; with `dense` it has a module with weights of its own after the pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    bert = Transformer(str(write_cross_encoder(folder.with_name(folder.name + "-bert"), seed=seed)))
    size = bert.get_embedding_dimension()
    modules = [bert, Pooling(size)]
    if dense:
        modules.append(Dense(size, 16))
    SentenceTransformer(modules=modules).save_pretrained(str(folder), create_model_card=False)
    return folder
