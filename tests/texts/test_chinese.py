"""What the parts beside BM25 make of Chinese: what works, and what does not."""

from __future__ import annotations

import pandas as pd

from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.tokenizers import HuggingFaceTokenizer

TEXT = (
    "长城位于中国北方，是古代的军事防御工程。它始建于两千多年前！你去过吗？许多游客说：“太壮观了。”"
    "  Great Wall 是它的英文名。今天，每年有上千万人参观长城。"
)
SENTENCES = [
    "长城位于中国北方，是古代的军事防御工程。",
    "它始建于两千多年前！",
    "你去过吗？",
    "许多游客说：“太壮观了。”",
    "Great Wall 是它的英文名。",
    "今天，每年有上千万人参观长城。",
]


def test_sentences_end_at_their_own_marks_without_a_space_behind_them() -> None:
    assert [TEXT[a:b] for a, b in sentence_spans(TEXT)] == SENTENCES


def test_a_chinese_full_stop_of_western_form_needs_a_space() -> None:
    assert len(sentence_spans("他来了.她走了.")) == 1
    assert len(sentence_spans("他来了. 她走了.")) == 2


def test_the_tokenizer_of_minilm_counts_a_character_as_a_token() -> None:
    tokenizer = HuggingFaceTokenizer("sentence-transformers/all-MiniLM-L6-v2")
    [offsets] = tokenizer.offsets(["长城位于中国"])
    assert offsets.tolist() == [[i, i + 1] for i in range(6)]
    passages = pd.DataFrame(
        {"qid": "q", "rank": [0], "docno": "d", "text": pd.Series([TEXT], dtype="str"), "score": 1.0}
    )
    layouts, prefixes = build_contexts(passages, None, tokenizer, [8], ["q"])
    assert contexts_at(layouts, prefixes, 8)["text"].tolist() == ["长城位于中国北方"]
