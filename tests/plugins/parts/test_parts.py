"""A sweep's parts, its LLM alone and its chunk sizes, from the records of its jobs."""

from __future__ import annotations

from ragauge.contract.jobs import systems_of
from ragauge.plugins.parts.finding import chunk_sizes, gain_of_retrieval
from sweep_records import record, sweep


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


def test_recorded_systems_without_any_context_are_the_llm_alone() -> None:
    jobs = [record("retriever=recorded", f"recorded.path={path}", context_tokens=n) for path, n in
            (("bare", 0), ("rag", 80), ("few", 1))]  # fmt: skip
    found = gain_of_retrieval(sweep(*jobs, labels={"rag": [5, 5]}))
    assert found is not None
    right = found.query("measure == 'correct'")
    assert right[["system", "base", "difference"]].values.tolist() == [
        ["rag", "bare", 1.0], ["few", "bare", 0.0],
    ]  # fmt: skip


def test_chunk_sizes_have_their_number_and_the_time_of_their_making() -> None:
    made = {"n_chunks": 9, "seconds_made_chunks": 1.0, "seconds_made_index": 2.5}
    jobs = [
        record("retriever=bm25", "retriever.top_k=5", "chunker=tokens", "chunker.size=64", ir_score=0.4, **made),
        record("retriever=bm25", "retriever.top_k=9", "chunker=tokens", "chunker.size=128", ir_score=0.6),
        record("retriever=none", "retriever.top_k=5", "chunker=tokens", "chunker.size=64"),
    ]
    jobs[0].ir_score_at_n = {50: 0.1, 100: 0.4}
    found = chunk_sizes(sweep(*jobs))
    assert found is not None
    rows = found.fillna(-1)[["chunks", "system", "n_tokens", "ir_score", "n_chunks", "seconds"]]
    assert list(rows.itertuples(index=False, name=None)) == [
        ("tokens, size=64", "bm25 · top_k=5", 50, 0.1, 9, 3.5),
        ("tokens, size=64", "bm25 · top_k=5", 100, 0.4, 9, 3.5),
        ("tokens, size=128", "bm25 · top_k=9", 100, 0.6, -1, -1),
    ]
    assert chunk_sizes(sweep(record("retriever=bm25"), record("retriever=sim"))) is None
