"""Transfer in a sweep: a dataset left out across groups, and the figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from test_groups import contents, load, of_part, write

from ragauge.estimate import asked
from ragauge.plugins.transfer.finding import transfer_figure
from ragauge.plugins.transfer.measured import leave_one_out
from ragauge.show.drawing import CLASS_COLOURS, MARKERS, save


def test_transfer_leaves_datasets_out_across_the_groups_of_the_same_means(tmp_path: Path) -> None:
    how = {"features": ["ir_score"], "calibrate": False}
    first, other = ({"record": {"estimate": {**how, "spline": spline}}} for spline in (False, True))
    jobs = [{"topics": d[0], "overrides": [f"dataset={d}", f"retriever={r}"], "noise": i, **(other if i else first)}
            for d in ("abc", "xyz") for i, r in enumerate(("bm25", "sim"))]  # fmt: skip
    folder = write(tmp_path, *jobs, of_part("judge", "x" * 16, "dataset=abc", "judge=openai"))
    groups = contents(load(folder))
    assert [g.jobs.group for g in groups] == [
        "dataset=abc, judge=lexical", "dataset=xyz, judge=lexical", "dataset=abc, judge=openai",
    ]  # fmt: skip
    rows = pd.concat([pd.read_parquet(folder / str(i) / "outcomes.parquet") for i in range(4)])
    rows["qid"] = rows["dataset"] + "/" + rows["qid"]
    expected = leave_one_out(asked(rows.reset_index(drop=True)), "dataset", n_boot=40, seed=0)
    for group in groups[:2]:
        assert set(group.value("transfer")) == {"retriever", "dataset"}
        pd.testing.assert_frame_equal(group.value("transfer")["dataset"].table, expected.table)
        assert "transfer_dataset" in group.page.figures
    assert groups[2].value("transfer") is None


def transfer_table() -> pd.DataFrame:
    return pd.DataFrame(
        [(f"retriever {g}", c, 0.2 + 0.01 * g, 0.2 + 0.02 * c) for g in range(5) for c in CLASS_COLOURS],
        columns=["group", "class", "predicted", "judged"],
    )


def test_groups_of_a_transfer_have_markers_and_classes_colours() -> None:
    axes = transfer_figure(transfer_table()).axes[0]
    assert len(axes.collections) == 5
    second = axes.collections[1]
    assert np.allclose(second.get_offsets(), [[0.2 + 0.02 * c, 0.21] for c in CLASS_COLOURS])
    assert [to_hex(colour).upper() for colour in second.get_facecolors()] == list(CLASS_COLOURS.values())
    legend = axes.get_figure().legends[0]  # type: ignore[union-attr]
    assert [text.get_text() for text in legend.get_texts()][5:] == [f"retriever {g}" for g in range(5)]
    assert [handle.get_marker() for handle in legend.legend_handles] == [*["s"] * 5, *MARKERS[:5]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "share that the judge found", "share predicted from the other groups",
    )  # fmt: skip
    top = 1.08 * 0.30  # of the largest share
    assert (axes.get_xlim(), axes.get_ylim()) == (pytest.approx((0, top)), pytest.approx((0, top)))
    assert axes.get_box_aspect() == 1
    assert axes.get_xgridlines()[0].get_visible()


def test_a_name_with_signs_of_formulas_is_drawn_as_it_stands(tmp_path: Path) -> None:
    save(transfer_figure(transfer_table().assign(group="$\\frac{$")), tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 5000
