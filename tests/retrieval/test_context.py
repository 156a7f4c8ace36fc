"""Contexts by hand, and stitched token offsets against the tokens of the joined text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from ragauge.contract import component, frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.order import LongContextOrder
from ragauge.texts.tokenizers import HuggingFaceTokenizer, Stitching, WordTokenizer

CORPUS = [
    "It's the year 2024, and they'll say: \"don't we've 12345 apples?\"\n\nNo!! Yes... maybe  not.",
    "The quick brown fox jumps over the lazy dog;\tthe dog doesn't mind.\r\nÜber straße café 北京 你好.",
    "Numbers 1 22 333 4444, and symbols #@ $ %^ &* () --- ___ <tags/> http://example.org/a?b=c",
] * 4
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def frames_of(texts: dict[str, list[str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A run and its chunks: for every topic the texts of its hits, best first; equal texts are one chunk."""
    distinct = list(dict.fromkeys(text for of_topic in texts.values() for text in of_topic))
    chunks = pd.DataFrame(
        {
            "docno": pd.Series([f"d%p{i}" for i in range(len(distinct))], dtype="str"),
            "text": pd.Series(distinct, dtype="str"),
        }
    )
    rows = [
        (qid, f"d%p{distinct.index(text)}", 1.0 / (rank + 1), rank)
        for qid, of_topic in texts.items()
        for rank, text in enumerate(of_topic)
    ]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).astype(
        {"qid": "str", "docno": "str", "score": float, "rank": int}
    )
    return run, chunks


CHUNKS = pd.DataFrame(
    {
        "docno": ["a%p0", "a%p1", "b%p0"],
        "text": ["the cat sat", "on the mat.", "A dog"],
    }
)
RUN = pd.DataFrame(
    {
        "qid": ["q1", "q1", "q2", "q1", "other"],
        "docno": ["a%p0", "b%p0", "a%p1", "a%p1", "b%p0"],
        "score": [2.0, 3.0, 1.0, 1.0, 9.0],
        "rank": [1, 0, 0, 2, 0],
    }
)


def test_the_budget_cuts_where_its_last_token_ends(word_tokenizer: WordTokenizer) -> None:
    layouts, prefixes = build_contexts(RUN, CHUNKS, word_tokenizer, [8, 0, 1, 3, 20, 3], ["q2", "q3", "q1"])
    frames.check("layouts", layouts)
    frames.check("prefixes", prefixes)
    assert layouts["qid"].tolist() == ["q2", "q3", "q1"]
    assert layouts["layout"].tolist() == [0, 0, 0]
    assert layouts["text"].tolist() == ["on the mat.", "", "A dog the cat sat on the mat."]
    assert layouts["docnos"].tolist() == [["a%p1"], [], ["b%p0", "a%p0", "a%p1"]]
    assert layouts["starts"].tolist() == [[0], [], [0, 6, 18]]
    of_q1 = prefixes[prefixes["qid"] == "q1"]
    assert of_q1["n_tokens"].tolist() == [0, 1, 3, 8, 20]
    assert of_q1["end"].tolist() == [0, 1, 9, 28, 29]
    assert of_q1["n_used"].tolist() == [0, 1, 3, 8, 9]
    assert of_q1["n_chunks"].tolist() == [0, 1, 2, 3, 3]


def test_an_empty_run_is_topics_without_hits(word_tokenizer: WordTokenizer) -> None:
    layouts, prefixes = build_contexts(frames.empty("run"), CHUNKS, word_tokenizer, [5], ["q1", "q2"])
    frames.check("layouts", layouts)
    frames.check("prefixes", prefixes)
    assert prefixes["qid"].tolist() == ["q1", "q2"]
    assert prefixes["n_used"].tolist() == [0, 0]


def test_exactly_as_many_tokens_as_the_budget(word_tokenizer: WordTokenizer) -> None:
    run, chunks = frames_of({"q": ["one two", "three "]})
    _, prefixes = build_contexts(run, chunks, word_tokenizer, [3, 4], ["q"])
    # The third token is the last one; only a budget that it does not fill takes the space behind it, too.
    assert prefixes["end"].tolist() == [len("one two three"), len("one two three ")]
    assert prefixes["n_used"].tolist() == [3, 3]


def test_only_the_chunks_that_the_largest_budget_needs_are_joined(word_tokenizer: WordTokenizer) -> None:
    run, chunks = frames_of({"q": [f"chunk number {i}" for i in range(50)]})
    layouts, prefixes = build_contexts(run, chunks, word_tokenizer, [3, 4], ["q"])
    assert layouts["text"].tolist() == ["chunk number 0 chunk number 1"]
    assert prefixes["end"].tolist() == [14, 20]
    assert prefixes["n_chunks"].tolist() == [1, 2]


def test_long_chunks_do_not_hide_the_tokens_behind_them(word_tokenizer: WordTokenizer) -> None:
    """Chunks far behind are tokenised only where the near ones do not fill the budget."""
    run, chunks = frames_of({"q": ["x" * 1000, "two", "y" * 1000, "four five"], "full": ["a b c d e", "two"]})
    layouts, prefixes = build_contexts(run, chunks, word_tokenizer, [4], ["q", "full"])
    found = contexts_at(layouts, prefixes, 4)["text"].tolist()
    assert found == ["x" * 1000 + " two " + "y" * 1000 + " four", "a b c d"]


def test_white_space_and_empty_chunks_keep_their_places(word_tokenizer: WordTokenizer) -> None:
    run, chunks = frames_of({"q": ["", "a", " \n", "b"], "blank": [" ", ""]})
    layouts, prefixes = build_contexts(run, chunks, word_tokenizer, [1, 2, 3], ["q", "blank"])
    assert layouts["text"].tolist() == [" a  \n b", "  "]
    assert layouts["starts"].tolist() == [[0, 1, 3, 6], [0, 2]]
    assert prefixes["end"].tolist() == [2, 7, 7, 2, 2, 2]
    assert prefixes["n_used"].tolist() == [1, 2, 2, 0, 0, 0]
    assert prefixes["n_chunks"].tolist() == [2, 4, 4, 1, 1, 1]


def test_reorder_after_cut_reorders_what_fits(word_tokenizer: WordTokenizer) -> None:
    layouts, prefixes = build_contexts(
        RUN, CHUNKS, word_tokenizer, [0, 3, 8, 20], ["q1", "q3"], LongContextOrder("first")
    )
    frames.check("layouts", layouts)
    frames.check("prefixes", prefixes)
    of_q1 = layouts[layouts["qid"] == "q1"]
    assert of_q1["layout"].tolist() == [0, 3, 8, 20]
    assert of_q1["text"].tolist() == [
        "",
        "the A dog",  # an even count: the best chunk stands last
        "A dog on the mat the cat sat",
        "A dog on the mat. the cat sat",
    ]
    assert of_q1["docnos"].tolist()[1:3] == [["a%p0", "b%p0"], ["b%p0", "a%p1", "a%p0"]]
    assert of_q1["starts"].tolist()[2] == [0, 6, 17]
    at_8 = prefixes[(prefixes["qid"] == "q1") & (prefixes["n_tokens"] == 8)].iloc[0]
    assert (at_8["layout"], at_8["end"], at_8["n_used"], at_8["n_chunks"]) == (8, 28, 8, 3)
    assert contexts_at(layouts, prefixes, 3)["text"].tolist() == ["the A dog", ""]


def test_contexts_at_a_budget(word_tokenizer: WordTokenizer) -> None:
    layouts, prefixes = build_contexts(RUN, CHUNKS, word_tokenizer, [3, 8], ["q1", "q2", "q3"])
    contexts = frames.check("contexts", contexts_at(layouts, prefixes, 3))
    assert contexts["text"].tolist() == ["A dog the", "on the mat", ""]
    assert contexts["n_used"].tolist() == [3, 3, 0]
    assert contexts["docnos"].tolist() == [["b%p0", "a%p0"], ["a%p1"], []]
    with pytest.raises(ConfigError, match="n_tokens=4 is not a budget of these contexts: 3, 8"):
        contexts_at(layouts, prefixes, 4)


def test_frames_from_parquet_serve_as_well(word_tokenizer: WordTokenizer, tmp_path: Path) -> None:
    layouts, prefixes = build_contexts(RUN, CHUNKS, word_tokenizer, [3, 8], ["q1", "q3"])
    layouts.to_parquet(tmp_path / "layouts.parquet")
    contexts = contexts_at(pd.read_parquet(tmp_path / "layouts.parquet"), prefixes, 3)
    assert contexts["docnos"].tolist() == [["b%p0", "a%p0"], []]


@pytest.mark.parametrize("grid", [[], [-1], [1.5], ["100"], [True]])
def test_a_grid_is_whole_numbers(grid: list[int], word_tokenizer: WordTokenizer) -> None:
    with pytest.raises(ConfigError, match="n_tokens grid"):
        build_contexts(RUN, CHUNKS, word_tokenizer, grid, ["q1"])


def test_an_unknown_chunk_is_named(word_tokenizer: WordTokenizer) -> None:
    with pytest.raises(DataError, match=r"qid='q1': chunk docno='a%p1' is not among the chunks"):
        build_contexts(RUN, CHUNKS[CHUNKS["docno"] != "a%p1"], word_tokenizer, [5], ["q1"])


def test_topics_that_repeat_are_named(word_tokenizer: WordTokenizer) -> None:
    with pytest.raises(DataError, match="qid='q1' stands there twice"):
        build_contexts(RUN, CHUNKS, word_tokenizer, [5], ["q1", "q1"])


# Pieces of text on which tokenizers differ: white space of all kinds, marks, added tokens, foldings.
CURIOUS = ["ll", " ", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u0301", "\u200b", "▁", "'t"]
CURIOUS += ["\u0345", "\u1100\u1161", "<unk>", "[SEP]", "\x1c", "\x85"]


# --- stitched offsets against the joined text ---------------------------------------------------------


def byte_level(add_prefix_space: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return trained(tokenizer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def llama_3() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return trained(tokenizer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def nfc_byte_level() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    return tokenizer


def metaspace(scheme: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return trained(tokenizer, special_tokens=["<unk>"])


def old_sentencepiece() -> Tokenizer:
    """As Llama 2 has it: one piece for the whole text, so that nothing can be stitched."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return trained(tokenizer, special_tokens=["<unk>"])


def trained(tokenizer: Tokenizer, **options: object) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=500, show_progress=False, **options))
    return tokenizer


STITCHED: dict[str, Stitching] = {
    "wordpiece": "free",
    "words": "free",
    "byte-level": "space",
    "byte-level with prefix space": "space",
    "byte-level after NFC": "space",
    "llama 3": "space",
    "metaspace always": "space",
    "metaspace first": "space",
    "metaspace never": "space",
    "llama 2": "joined",
}


@pytest.fixture(scope="module")
def tokenizers_by_name(tmp_path_factory: pytest.TempPathFactory) -> dict[str, HuggingFaceTokenizer]:
    made = {
        "byte-level": byte_level(),
        "byte-level with prefix space": byte_level(add_prefix_space=True),
        "byte-level after NFC": nfc_byte_level(),
        "llama 3": llama_3(),
        "metaspace always": metaspace("always"),
        "metaspace first": metaspace("first"),
        "metaspace never": metaspace("never"),
        "llama 2": old_sentencepiece(),
    }
    folder = tmp_path_factory.mktemp("tokenizers")
    found: dict[str, HuggingFaceTokenizer] = {
        "wordpiece": HuggingFaceTokenizer("all-MiniLM-L6-v2"),
        "words": WordTokenizer(),  # type: ignore[dict-item]
    }
    for name, tokenizer in made.items():
        (folder / name).mkdir()
        tokenizer.save(str(folder / name / "tokenizer.json"))
        found[name] = HuggingFaceTokenizer(str(folder / name))
    return found


def assert_ends_are_those_of_the_joined_text(tokenizer: HuggingFaceTokenizer, topics: dict[str, list[str]]) -> None:
    run, chunks = frames_of(topics)
    joined = [" ".join(texts) for texts in topics.values()]
    expected = [np.maximum.accumulate(offsets[:, 1]) for offsets in tokenizer.offsets(joined)]
    grid = range(max(map(len, expected), default=0) + 2)
    layouts, prefixes = build_contexts(run, chunks, tokenizer, grid, list(topics))
    for qid, text, ends in zip(topics, joined, expected, strict=True):
        of_topic = prefixes[prefixes["qid"] == qid]
        short = len(grid) - 1 - len(ends)
        assert of_topic["end"].tolist() == [0, *ends.tolist(), *[len(text)] * short], (qid, topics[qid])
        assert of_topic["n_used"].tolist() == [*range(len(ends) + 1), *[len(ends)] * short]
        layout = layouts.set_index("qid").loc[qid, "text"]
        assert text.startswith(layout)
        assert len(layout) >= of_topic["end"].max()


@pytest.mark.parametrize("name", STITCHED)
def test_stitched_ends_are_those_of_the_joined_text(
    name: str, tokenizers_by_name: dict[str, HuggingFaceTokenizer]
) -> None:
    tokenizer = tokenizers_by_name[name]
    assert tokenizer.stitching == STITCHED[name]
    rng = random.Random(0)
    letters = [*"abTHE'sté.,!?-_12349北😀ßİς", *CURIOUS]
    words = " ".join(CORPUS).split()
    topics = {}
    for i in range(300):
        chunks = [
            "".join(rng.choices(letters, k=rng.randint(0, 8))) if rng.random() < 0.7 else " ".join(rng.sample(words, 4))
            for _ in range(rng.randint(1, 6))
        ]
        topics[f"q{i}"] = list(dict.fromkeys(chunks))
    assert_ends_are_those_of_the_joined_text(tokenizer, topics)


@settings(max_examples=12, deadline=None)
@given(chunks=st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=6, unique=True))
def test_stitching_holds_for_any_text(tokenizers_by_name: dict[str, HuggingFaceTokenizer], chunks: list[str]) -> None:
    for tokenizer in tokenizers_by_name.values():
        assert_ends_are_those_of_the_joined_text(tokenizer, {"q": chunks})


def test_a_tokenizer_that_says_nothing_is_given_the_joined_text() -> None:
    seen: list[str] = []

    @dataclass(frozen=True)
    class Fives(component.Tokenizer):
        """Five characters are a token, so that tokens run over the ends of chunks."""

        name: str = "fives"

        def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
            seen.extend(texts)
            spans = [[(i, min(i + 5, len(text))) for i in range(0, len(text), 5)] for text in texts]
            return [np.array(of_text, dtype=np.int64).reshape(-1, 2) for of_text in spans]

    run, chunks = frames_of({"q": ["abc", "def", "ghi"]})
    _, prefixes = build_contexts(run, chunks, Fives(), [1, 2, 3], ["q"])
    assert seen == ["abc def ghi"]
    assert prefixes["end"].tolist() == [5, 10, 11]
