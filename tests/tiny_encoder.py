"""Models of sentence-transformers over a BERT of two layers with random weights and a vocabulary of letters."""

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


def write_sparse_encoder(folder: Path, seed: int = 0, similarity: str = "dot", positions: int = 64) -> Path:
    """The folder of a model of SPLADE's kind: each text to a weight for some of the letters."""
    import torch
    import transformers
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sentence_transformer.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    bert = write_cross_encoder(folder.with_name(folder.name + "-bert"), seed=seed, positions=positions)
    torch.manual_seed(seed)
    config = transformers.BertConfig.from_pretrained(bert)
    transformers.BertForMaskedLM(config).save_pretrained(bert)
    modules = [Transformer(str(bert), transformer_task="fill-mask"), SpladePooling()]
    SparseEncoder(modules=modules, similarity_fn_name=similarity).save_pretrained(str(folder), create_model_card=False)
    return folder


def write_multi_vector_encoder(
    folder: Path, seed: int = 0, positions: int = 64, prompts: dict[str, str] | None = None
) -> Path:
    """The folder of a model of ColBERT's kind: each text to a vector of length 1 for every token but full stops."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Transformer

    bert = Transformer(
        str(write_cross_encoder(folder.with_name(folder.name + "-bert"), seed=seed, positions=positions))
    )
    torch.manual_seed(seed)
    size = bert.get_embedding_dimension()
    modules = [
        bert,
        Dense(size, 8, bias=False, module_input_name="token_embeddings", module_output_name="token_embeddings"),
        MultiVectorMask(skiplist_words=["."]),
        Normalize(module_input_name="token_embeddings", module_output_name="token_embeddings"),
    ]
    MultiVectorEncoder(modules=modules, prompts=prompts).save_pretrained(str(folder), create_model_card=False)
    return folder
