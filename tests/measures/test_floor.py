"""The floor of a measure: what is unrelated text, the correction by hand, corpora with too little text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.measures import Substring, corrected_parts, floor_means, floors
from ragauge.measures.floor import corrected_values, is_corrected, raw, short_of_text
from ragauge.texts.tokenizers import WordTokenizer

EVIDENCE = pd.DataFrame(
    {
        "qid": ["q1", "q1", "q2"],
        "part": [0, 1, 0],
        "docno": ["d0", "d1", "d2"],
        "text": ["abcd", "zz", "xyxy"],
    }
).astype({"docno": "object"})


def chunked(*texts: str) -> pd.DataFrame:
    """A document d0, d1, ... of one chunk for every text."""
    docs = [f"d{i}" for i in range(len(texts))]
    return pd.DataFrame({"docno": [f"{d}%p0" for d in docs], "text": texts, "parent": docs})


def found(texts: Sequence[str], grid: Sequence[int], evidence: pd.DataFrame = EVIDENCE, **how: int) -> pd.DataFrame:
    return floors(Substring(), evidence, chunked(*texts), WordTokenizer(), grid, **how)


def test_the_chunks_of_the_documents_that_the_evidence_names_are_left_out() -> None:
    made = found(["abcd", "zz", "xyxy", "ab"], [1, 100]).set_index(["qid", "n_tokens", "part"])["value"]
    assert made["q1", 100, 0] == 2 / 4  # of "xyxy" and "ab" in either order; d0 holds all of it
    assert made["q1", 100, 1] == 0
    assert made["q2", 100, 0] == 0
    assert made["q1", 1, 0] in (0, 1 / 8, 2 / 8, 3 / 8, 4 / 8)  # the mean of four draws of 0 or 1/2


def test_a_part_without_a_document_leaves_out_the_chunks_that_hold_it() -> None:
    part = "a sentence that is long enough to be no chance"
    evidence = pd.DataFrame({"qid": ["q"], "part": [0], "docno": [None], "text": [part]})
    made = found(
        [f"before.  {part.replace(' long', chr(10) + 'long')} after", "nothing", "of the kind"],
        [100],
        evidence,
    )
    assert made["value"].item() < 0.2
    assert made["n_used"].item() == 4
    # What is in the part whole is its own, too.
    made = found([part[:40], "nothing"], [100], evidence)
    assert made["n_used"].item() == 1
    # Two letters stand in many a text.
    made = found(["ab", "cd"], [100], evidence.assign(text="ab"))
    assert made["value"].item() == 1


def test_the_same_text_is_drawn_again_and_another_seed_draws_another() -> None:
    texts = [f"{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(200)]
    first, again = found(texts, [3]), found(texts, [3])
    pd.testing.assert_frame_equal(first, again)
    assert not first["value"].equals(found(texts, [3], seed=1)["value"])


def test_a_topic_without_unrelated_text_has_no_floor() -> None:
    evidence = EVIDENCE[EVIDENCE["qid"] == "q2"]
    made = found(["", "", "xyxy"], [10], evidence).query("n_used > 0")
    assert made.empty
    one = floors(Substring(), evidence, chunked("", "", "xyxy").iloc[2:], WordTokenizer(), [10])
    assert one.empty
    means = floor_means(one)
    assert means.empty
    assert short_of_text(means, 10, 1) == (
        "1 of 1 topics have no floor of the score: the corpus holds nothing but their evidence's documents"
    )
    parts = pd.DataFrame({"qid": ["q2"], "n_tokens": [10], "part": [0], "value": [0.5]})
    with pytest.raises(DataError, match=r"correct=floor: 1 topic\(s\) have no floor, such as qid='q2'"):
        corrected_parts(parts, one)


def test_a_corpus_without_chunks_has_no_floor() -> None:
    assert found([], [10]).empty


def test_a_corpus_with_less_text_than_the_budget_gives_all_of_it() -> None:
    made = found(["abcd", "zz", "xyxy", "ab cd"], [1, 3, 50])
    means = floor_means(made).set_index("n_tokens")
    assert means.loc[3, "short"] == 0
    assert means.loc[50, "short"] == 2
    assert means.loc[50, "n_used"] == 3
    told = short_of_text(means.reset_index(), 50, 2)
    assert told is not None
    assert "less text for 2 of 2 topics" in told
    assert "holds 3 tokens" in told
    assert short_of_text(means.reset_index(), 3, 2) is None


def test_chunks_that_hold_few_tokens_for_their_length_still_fill_the_budget() -> None:
    long = ["w" * 300 for _ in range(60)]  # a token of 300 characters
    made = found(["abcd", "zz", "xyxy", *long], [40])
    assert (made["n_used"] == 40).all()


def test_all_draws_lie_within_a_large_corpus() -> None:
    texts = [f"word{i} and more of it" for i in range(3000)]
    made = found(texts, [5, 4000])  # 500 of its chunks have 2,500 tokens
    assert (made.groupby("n_tokens")["n_used"].min() == [5, 4000]).all()
    assert made["value"].between(0, 1).all()


def test_a_correction_by_hand() -> None:
    values, floor = np.array([0.1, 0.2, 0.6, 1.0, 1.0, 0.5]), np.array([0.2, 0.2, 0.2, 0.2, 1.0, 1.0])
    assert corrected_values(values, floor).tolist() == pytest.approx([0, 0, 0.5, 1, 1, 0])


def test_every_part_is_corrected_by_its_own_floor() -> None:
    keys = {"qid": ["q", "q"], "n_tokens": [5, 5], "part": [0, 1]}
    parts = pd.DataFrame({**keys, "value": [0.6, 0.6]})
    of_parts = pd.DataFrame({**keys, "value": [0.5, 0.1]}).iloc[::-1]
    # Whichever part is found whole, it counts as half of the topic, however short it is.
    assert corrected_parts(parts, of_parts)["value"].tolist() == pytest.approx([0.2, 0.5 / 0.9])
    whole = corrected_parts(parts.assign(value=[1.0, 0.1]), of_parts)["value"]
    assert whole.tolist() == [1.0, 0.0]


def test_the_corrected_floor_is_each_draw_against_the_others() -> None:
    texts = ["abcd", "zz", "xyxy", "ab", "qq"]
    made = found(texts, [1], draws=2)
    one = made[(made["qid"] == "q1") & (made["part"] == 0)]
    # Draws of 0 and 1/2 against each other: 0 and 1/2; equal ones give 0.
    assert one["corrected"].item() == (0.25 if one["value"].item() == 0.25 else 0)
    assert found(texts, [1], draws=1)["corrected"].isna().all()


def test_a_measure_without_a_correction_is_its_own_raw_one() -> None:
    assert raw(Substring()) == Substring()
    assert raw(Substring(correct="floor", fold=("case",))) == Substring(fold=("case",))
    assert not is_corrected(Substring())
    assert not is_corrected(object())
