"""What the parts beside BM25 make of Chinese: what works, and what does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.protocols import Embedder, Tools
from ragauge.measures import Substring, Words
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.embedders import SentenceTransformerEmbedder
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.tokenizers import HuggingFaceTokenizer, WordTokenizer

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


def test_the_ir_score_counts_characters_of_any_script() -> None:
    evidence = "它始建于两千多年前！"
    context = "".join(SENTENCES[:1]) + evidence[:5]
    ends = np.array([0, len(context) - 3, len(context)])
    assert Substring().score([evidence], context, ends).tolist() == [[0, 0.2, 0.5]]


def test_the_measure_words_takes_a_clause_for_a_word_and_the_tokenizer_a_character() -> None:
    [[found]] = Words().score(["长城位于中国北方"], "长城在中国北方", np.array([7]))
    assert found == 0
    assert len(WordTokenizer().offsets(["长城位于中国北方，是古代的工程。"])[0]) == 16


def test_the_tokenizer_of_minilm_counts_a_character_as_a_token() -> None:
    tokenizer = HuggingFaceTokenizer("sentence-transformers/all-MiniLM-L6-v2")
    [offsets] = tokenizer.offsets(["长城位于中国"])
    assert offsets.tolist() == [[i, i + 1] for i in range(6)]
    passages = pd.DataFrame(
        {"qid": "q", "rank": [0], "docno": "d", "text": pd.Series([TEXT], dtype="str"), "score": 1.0}
    )
    layouts, prefixes = build_contexts(passages, None, tokenizer, [8], ["q"])
    assert contexts_at(layouts, prefixes, 8)["text"].tolist() == ["长城位于中国北方"]


def test_semantic_chunks_are_whole_sentences(tools: Tools) -> None:
    docs = pd.DataFrame({"docno": ["d"], "title": "", "text": [TEXT]}).astype("str")
    chunks = SemanticChunker(min_sentence_chars=5).chunk(docs, tools)
    ends = {b for _, b in sentence_spans(TEXT)}
    assert len(chunks) > 1
    assert set(chunks["end"]) <= ends
    assert "".join(chunks["text"]).replace(" ", "") == TEXT.replace(" ", "")
    # The default is for English: 40 characters are about two Chinese sentences.
    assert len(SemanticChunker().chunk(docs, tools)) < len(SENTENCES) / 2


# Questions, the sentence that answers each, in both languages.
QUESTIONS = {
    "chinese": [
        ("谁发明了电话？", "亚历山大·贝尔在1876年获得了电话的专利。"),
        ("水在多少度沸腾？", "在海平面上，水的沸点是一百摄氏度。"),
        ("大熊猫吃什么？", "竹子是大熊猫最主要的食物。"),
        ("哪座山最高？", "珠穆朗玛峰海拔八千八百多米，居世界之首。"),
        ("什么时候下雪？", "这里的冬季从十二月开始，常有大雪。"),
        ("怎样去机场？", "地铁二号线直达航站楼。"),
        ("图书馆几点关门？", "馆内开放时间为上午九点至晚上十点。"),
        ("他为什么迟到？", "因为路上堵车，他晚了半个小时。"),
    ],
    "english": [
        ("Who invented the telephone?", "Alexander Bell received a patent for the telephone in 1876."),
        ("At what temperature does water boil?", "At sea level water boils at one hundred degrees Celsius."),
        ("What do giant pandas eat?", "Bamboo is the main food of giant pandas."),
        ("Which mountain is the highest?", "Mount Everest is over 8,800 metres, first in the world."),
        ("When does it snow?", "Winter here begins in December and often brings heavy snow."),
        ("How do I get to the airport?", "Metro line two goes straight to the terminal."),
        ("When does the library close?", "The reading rooms are open from nine to ten at night."),
        ("Why was he late?", "There was a traffic jam, so he came half an hour after time."),
    ],
}


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return SentenceTransformerEmbedder("sentence-transformers/all-MiniLM-L6-v2")


def first_found(embedder: Embedder, language: str) -> int:
    """How many of the eight questions have their own sentence as the nearest of the eight."""
    questions, sentences = zip(*QUESTIONS[language], strict=True)
    cosine = embedder.embed(questions, "query") @ embedder.embed(sentences).T
    return int((cosine.argmax(axis=1) == np.arange(len(questions))).sum())


def test_minilm_is_for_english(minilm: Embedder) -> None:
    """The default embedder finds all eight in English and not half of them in Chinese."""
    assert first_found(minilm, "english") == 8
    assert first_found(minilm, "chinese") <= 4
