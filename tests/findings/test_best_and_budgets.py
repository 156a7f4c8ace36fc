"""What terminal and figures say of systems and budgets."""

from __future__ import annotations

from ragauge.show.figures import ir_score_by_n


def test_bands_are_shaded_beside_their_lines() -> None:
    curves = {"bm25": {100: 0.5, 200: 0.6}, "sim": {100: 0.4, 200: 0.5}}
    plain = ir_score_by_n(curves)
    shaded = ir_score_by_n(curves, bands={"sim": {100: (0.35, 0.45), 200: (0.45, 0.55)}})
    assert not plain.axes[0].collections
    (area,) = shaded.axes[0].collections
    heights = area.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.35, 0.55)
