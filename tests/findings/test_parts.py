"""A sweep's parts, its LLM alone and its chunk sizes, from the records of its jobs."""

from __future__ import annotations

import pytest

from ragauge.contract.jobs import systems_of
from ragauge.findings.parts import ablation_of, chunk_sizes, gain_of_retrieval, settings_of
from sweep_records import record, sweep

SIZES = [
    record(f"retriever={r}", f"chunker.size={s}", ir_score=score)
    for r, s, score in (("bm25", 64, 0.4), ("bm25", 128, 0.6), ("none", 64, 0.0), ("none", 128, 0.0))
]


def test_a_factor_is_what_the_jobs_differ_in_but_for_the_budget() -> None:
    jobs = [record("retriever=bm25", "seed=1"), record("retriever=sim", "seed=1", n=300)]
    assert settings_of(jobs) == {"bm25": {"retriever": "bm25"}, "sim": {"retriever": "sim"}}
    assert list(settings_of(SIZES).values())[1] == {"retriever": "bm25", "chunker.size": "128"}


def test_chunks_are_not_compared_where_nothing_is_retrieved() -> None:
    found = ablation_of(sweep(*SIZES)).query("measure == 'ir_score'").set_index("factor")
    assert found.loc["chunker.size", "difference"] == pytest.approx(0.2)
    assert found.loc["chunker.size", "settings"] == 1
    assert (found.loc["retriever", "base"], found.loc["retriever", "settings"]) == ("none", 2)
    assert found.loc["retriever", "difference"] == pytest.approx(0.5)


def test_the_gain_is_over_the_same_llm_with_the_settings_most_alike() -> None:
    jobs = [
        record(f"retriever={r}", f"llm={llm}", f"chunker.size={size}")
        for r in ("bm25", "none") for llm in ("a", "b") for size in (64, 128)
        if (r, size) != ("none", 128)
    ]  # fmt: skip
    labels = {name: [5, 5] for name in systems_of(jobs) if name.startswith("bm25")}
    found = gain_of_retrieval(sweep(*jobs, labels=labels))
    assert found is not None
    right = found[found["measure"] == "correct"]
    assert right["difference"].tolist() == [1.0] * 4
    llms = {column: right[column].str.split(" · ").str[1] for column in ("system", "base")}
    assert (llms["system"] == llms["base"]).all()
    assert gain_of_retrieval(sweep(record("retriever=bm25"), record("retriever=sim"))) is None


@pytest.mark.parametrize("sizes", [(64, 128), (128, 64)])
def test_of_several_that_retrieve_nothing_the_one_most_like_a_system_is_its_base(sizes: tuple[int, int]) -> None:
    jobs = [record(f"retriever={r}", f"chunker.size={size}") for r in ("bm25", "none") for size in sizes]
    found = gain_of_retrieval(sweep(*jobs))
    assert found is not None
    assert {(row["system"], row["base"]) for row in found.to_dict("records")} == {
        (f"bm25 · chunker.size={size}", f"none · chunker.size={size}") for size in sizes
    }


def test_of_an_llm_alone_without_the_budget_the_largest_that_it_has_is_taken() -> None:
    jobs = [record("retriever=bm25", n=300), *(record("retriever=none", n=n) for n in (100, 200, 50))]
    made = sweep(*jobs)
    outcomes = made.outcomes
    right = outcomes["system"].eq("none") & outcomes["n_tokens"].eq(200)
    outcomes["label"] = outcomes["label"].mask(right, 5)
    found = gain_of_retrieval(made)
    assert found is not None
    assert found.set_index("measure").loc["correct", "difference"] == -1


def test_an_llm_alone_at_another_budget_is_compared_nevertheless() -> None:
    jobs = [record("retriever=bm25", n=300), record("retriever=bm25", n=100), record("retriever=none", n=0)]
    found = gain_of_retrieval(sweep(*jobs, labels={"bm25": [5, 1]}))
    assert found is not None
    assert found.set_index("measure").loc["correct", "difference"] == 0.5


def test_chunk_sizes_have_their_number_and_the_time_of_their_making() -> None:
    made = {"n_chunks": 9, "seconds_made_chunks": 1.0, "seconds_made_index": 2.5}
    jobs = [
        record("retriever=bm25", "chunker=tokens", "chunker.size=64", ir_score=0.4, **made),
        record("retriever=bm25", "chunker=tokens", "chunker.size=128", ir_score=0.6),
    ]
    found = chunk_sizes(sweep(*jobs))
    assert found is not None
    assert found["chunks"].tolist() == ["tokens, size=64", "tokens, size=128"]
    assert found.loc[0, ["n_chunks", "seconds", "ir_score"]].tolist() == [9, 3.5, 0.4]
    assert found.loc[1, ["n_chunks", "seconds"]].isna().all()
    assert chunk_sizes(sweep(record("retriever=bm25"), record("retriever=sim"))) is None
