"""Texts as numbered tokens are the tokens of each text by itself."""

from __future__ import annotations

import random

from ragauge.measures.tokens import Tokens, by_tokens

PIECES = [
    "", "a", "the", "The cat's", "4.6", "é", "İi", "中文 你好", "ไทย", "$5", "U.S.", "well-", "well-\nknown",
    "end-\n of", "x\u00a0y", "\u202f", "!", "&amp;", "<skipped>",
]  # fmt: skip


def check_numbered(tokens: Tokens) -> None:
    rng = random.Random(0)
    answers, others = (["", *(" ".join(rng.choices(PIECES, k=rng.randrange(6))) for _ in range(200))] for _ in range(2))
    found = by_tokens(tokens, answers, others)
    read = [[tokens(text) for text in group] for group in (answers, others)]
    names = {}
    for laid_out, texts in zip(found, read, strict=True):
        assert laid_out.sizes.tolist() == [len(text) for text in texts]
        flat = [token for text in texts for token in text]
        for number, token in zip(laid_out.symbols.tolist(), flat, strict=True):
            assert names.setdefault(number, token) == token
    assert len(set(names.values())) == len(names)
