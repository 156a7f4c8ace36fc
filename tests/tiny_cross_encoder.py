"""A cross-encoder with random weights and a vocabulary of letters, as sentence-transformers reads it."""

from __future__ import annotations

import string
from pathlib import Path


def write_cross_encoder(folder: Path, num_labels: int = 1, seed: int = 0, positions: int = 64) -> Path:
    """The folder with config, weights (safetensors) and tokenizer of a BERT of two layers."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    letters = string.ascii_lowercase + string.digits + "?."
    words = [*special, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=positions,
        initializer_range=0.3,  # so that scores differ well beyond float noise
        num_labels=num_labels,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=positions,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)
    return folder
