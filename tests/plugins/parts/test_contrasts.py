"""The tables of what each part brings as the report shows them."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.finding import Grid, Num, columns_of
from ragauge.contract.jobs import Jobs
from ragauge.plugins.parts.finding import Brought, Parts
from ragauge.show.html import blocks
from sweep_records import record_of

ABLATION = pd.DataFrame(
    [("retriever", "sim", "bm25", 2, "ir_score", 0.1), ("retriever", "sim", "bm25", 2, "correct", -0.25),
     ("llm", "b", "a", 3, "ir_score", 0.2)],
    columns=["factor", "option", "base", "settings", "measure", "difference"],
).assign(lo=-0.5, hi=0.5)  # fmt: skip
GAINS = pd.DataFrame([("sim", "none", "correct", 0.5, 0.25, 0.75)],
                     columns=["system", "base", "measure", "difference", "lo", "hi"])  # fmt: skip
SIZES = pd.DataFrame(
    [("size=64", "", 100, 0.4, 9, 3.5), ("size=64", "", 300, 0.5, 9, None), ("size=128", "sim", 300, 0.6, 5, 2.0)],
    columns=["chunks", "system", "n_tokens", "ir_score", "n_chunks", "seconds"],
)


def test_parts_are_shown_as_far_as_the_sweep_tells_of_them() -> None:
    rows = pd.DataFrame({"system": ["bm25", "sim"], "n_tokens": 300})
    jobs = Jobs("s", "e", [record_of()], [], rows)

    def grids(value: Brought) -> dict[str, Grid]:
        (section,) = Parts().show(jobs, value, {}).sections
        assert blocks(section.blocks, {})  # a page can be made of them
        return {block.label: block for block in section.blocks if isinstance(block, Grid)}

    every = grids(Brought(ABLATION, GAINS, SIZES))
    assert list(every) == ["What each part brings", "Gain over the LLM alone", "Chunk sizes"]
    assert list(grids(Brought(ABLATION, GAINS.head(0), None))) == ["What each part brings"]
    assert list(grids(Brought(ABLATION.head(0), None, SIZES))) == ["Chunk sizes"]
    assert list(grids(Brought(ABLATION.head(0), GAINS, None))) == ["Gain over the LLM alone"]
    brought = every["What each part brings"]
    assert [column.title for column in columns_of(brought.columns)] == [
        "Part", "Option", "Against", "IR score", "Right, points", "Settings",
    ]  # fmt: skip
    assert [list(row) for row in brought.rows] == [
        ["retriever", "sim", "bm25", Num(0.1, "signed", -0.5, 0.5), Num(-0.25, "points", -0.5, 0.5), "2"],
        ["llm", "b", "a", Num(0.2, "signed", -0.5, 0.5), Num(None, "points"), "3"],
    ]  # fmt: skip
    gain = every["Gain over the LLM alone"]
    assert [column.title for column in columns_of(gain.columns)] == ["System", "Right"]
    assert [list(row) for row in gain.rows] == [["sim", Num(0.5, "points", 0.25, 0.75)]]
    sizes = every["Chunk sizes"]
    assert [column.title for column in columns_of(sizes.columns)][2:] == ["Number", "Index", "N = 100", "N = 300"]
    assert [list(row) for row in sizes.rows] == [
        ["size=64", "all", Num(9, "whole"), Num(3.5, "seconds"), Num(0.4), Num(0.5)],
        ["size=128", "sim", Num(5, "whole"), Num(2.0, "seconds"), Num(None), Num(0.6)],
    ]
