"""Figures: what is drawn, and that no text lies on another."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from ragauge.estimate import fit_thresholds, reliability_curve
from ragauge.show import figures
from ragauge.show.drawing import CLASS_COLOURS, MISSING_COLOUR, save, svg

RNG = np.random.default_rng(0)
CURVES = {f"retriever {i}": {n: 0.1 * i + n / 2000 for n in range(100, 1100, 100)} for i in range(5)}
OUTCOMES = pd.DataFrame(
    {
        "qid": [f"q{i}" for i in range(200)],
        "ir_score": np.sort(RNG.random(200)).round(1),
        "label": pd.array(RNG.integers(1, 6, 200), dtype="Int8"),
    }
)


def shares(*names: str) -> pd.DataFrame:
    columns = [*(f"judge_share_{c}" for c in CLASS_COLOURS), "judge_share_missing"]
    return pd.DataFrame([[0.1, 0.05, 0.3, 0.2, 0.3, 0.05]] * len(names), index=list(names), columns=columns)


def transfer_table() -> pd.DataFrame:
    return pd.DataFrame(
        [(f"retriever {g}", c, 0.2 + 0.01 * g, 0.2 + 0.02 * c) for g in range(5) for c in CLASS_COLOURS],
        columns=["group", "class", "predicted", "judged"],
    )


def every_figure() -> dict[str, Figure]:
    curve = reliability_curve(RNG.random(300), RNG.random(300) > 0.5)
    return {
        "ir_score_by_n": figures.ir_score_by_n(
            CURVES, {"retriever 1": {100: 0.2, 1000: 0.6}}, {"unrelated text": {100: 0.1}}
        ),
        "judge_shares": figures.judge_shares(
            shares("bm25", "chunker=semantic · retriever=a_long_name · llm=another"), "Judge classes"
        ),
        "sorted_scores": figures.sorted_scores(OUTCOMES, fit_thresholds(OUTCOMES, n_boot=0), "All systems"),
        "floor": figures.sorted_scores(OUTCOMES, fit_thresholds(OUTCOMES, n_boot=0), "A job", floor=0.1),
        "reliability": figures.reliability({"P(5, right)": curve}, "Out-of-fold reliability"),
        "transfer": figures.transfer(transfer_table()),
    }


@pytest.mark.parametrize("name", list(every_figure()))
def test_texts_stay_inside_and_off_each_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = every_figure()[name]
    canvas, page = FigureCanvasAgg(figure), figure.bbox
    canvas.draw()
    # Of the tick labels matplotlib draws only those within the limits.
    drawn: list[Text] = []
    monkeypatch.setattr(Text, "draw", lambda self, renderer: drawn.append(self))
    canvas.draw()
    texts = [text for text in drawn if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts]
    assert len(boxes) > 5
    for i, (text, box) in enumerate(boxes):
        assert box.x0 >= -1, text
        assert box.x1 <= page.x1 + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= page.y1 + 1, text
        for other, other_box in boxes[i + 1 :]:
            assert text == other or not box.padded(-1).overlaps(other_box.padded(-1)), (text, other)


def test_the_floor_is_a_line_of_its_own_in_grey() -> None:
    floors = {"unrelated text": {100: 0.066, 1000: 0.099}}
    axes = figures.ir_score_by_n(CURVES, floors=floors).axes[0]
    (line,) = [line for line in axes.lines if line.get_label() == "unrelated text"]
    assert line.get_xdata().tolist() == [100, 1000]
    assert line.get_ydata().tolist() == [0.066, 0.099]
    assert to_hex(line.get_color()) not in {to_hex(other.get_color()) for other in axes.lines if other is not line}
    assert len(axes.lines) == len(figures.ir_score_by_n(CURVES).axes[0].lines) + 1


def test_the_floor_is_a_mark_in_the_sorted_scores_of_one_budget() -> None:
    thresholds = fit_thresholds(OUTCOMES, n_boot=0)
    lines = figures.sorted_scores(OUTCOMES, thresholds, "A job", floor=0.125).axes[0].lines
    (line,) = [line for line in lines if line.get_label() == "unrelated text, 0.125"]
    assert set(line.get_ydata()) == {0.125}
    assert len(figures.sorted_scores(OUTCOMES, thresholds, "A sweep").axes[0].lines) == len(lines) - 1


def test_svg_is_the_same_twice_and_holds_real_text() -> None:
    first, second = (svg(figures.ir_score_by_n(CURVES)) for _ in range(2))
    assert first == second
    texts = {e.text for e in ElementTree.fromstring(first).iter("{http://www.w3.org/2000/svg}text")}
    assert "IR score, mean over topics" in texts
    assert set(CURVES) <= texts


def test_many_points_do_not_swell_the_svg() -> None:
    many = pd.concat([OUTCOMES] * 50).assign(qid=lambda f: np.arange(len(f)).astype(str))
    assert len(svg(figures.sorted_scores(many, fit_thresholds(many, n_boot=0), "many"))) < 600_000


def test_names_are_no_formulas_and_are_not_hidden(tmp_path: Path) -> None:
    names = ["$\\frac{$", "_hidden", "<b>&"]
    figure = figures.ir_score_by_n({name: {100: 0.5} for name in names})
    save(figure, tmp_path / "figures" / "a.png")
    assert [t.get_text().strip() for t in figure.legends[0].get_texts()] == [
        "\\$\\frac{\\$",
        "_hidden",
        "<b>&",
    ]
    save(figures.judge_shares(shares(*names), "a"), tmp_path / "b.png")
    save(figures.transfer(transfer_table().assign(group=names[0])), tmp_path / "c.png")
    assert (tmp_path / "figures" / "a.png").stat().st_size > 5000


def test_topics_of_one_score_stand_by_class() -> None:
    frame = pd.DataFrame(
        {
            "qid": list("abcd"),
            "ir_score": [1.0, 1.0, 1.0, 0.2],
            "label": pd.array([5, 1, 5, None], dtype="Int8"),
        }
    )
    figure = figures.sorted_scores(frame, fit_thresholds(frame, n_boot=0), "ties")
    axes = figure.axes[0]
    [points] = axes.collections
    assert points.get_offsets().tolist() == [[1, 0.2], [2, 1.0], [3, 1.0], [4, 1.0]]
    colours = [to_hex(c).upper() for c in points.get_facecolors()]
    assert colours == [MISSING_COLOUR, CLASS_COLOURS[1], CLASS_COLOURS[5], CLASS_COLOURS[5]]
    assert [t.get_text() for t in figure.legends[0].get_texts()][:3] == [
        "1 lack of information", "5 right", "no verdict",
    ]  # fmt: skip


def test_the_strip_of_many_topics_holds_their_shares() -> None:
    n = 4000
    frame = pd.DataFrame(
        {
            "qid": np.arange(n).astype(str),
            "ir_score": np.linspace(0, 1, n),
            "label": pd.array(np.tile([5, 4], n // 2), dtype="Int8"),
        }
    )
    figure = figures.sorted_scores(frame, fit_thresholds(frame, n_boot=0), "half and half")
    [image] = figure.axes[0].child_axes[0].images
    strip = np.asarray(image.get_array())
    assert (strip[: len(strip) // 2] == to_rgb(CLASS_COLOURS[4])).all()
    assert (strip[len(strip) // 2 :] == to_rgb(CLASS_COLOURS[5])).all()


def test_without_verdicts_scores_are_still_drawn() -> None:
    frame = OUTCOMES.assign(label=pd.array([None] * len(OUTCOMES), dtype="Int8"))
    figure = figures.sorted_scores(frame, fit_thresholds(frame, n_boot=0), "no judge")
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["no verdict"]


def test_a_figure_is_written_as_png_svg_and_pdf_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, head in begins.items():
        for time in ("one", "two"):
            save(figures.ir_score_by_n(CURVES), tmp_path / time / f"figure.{kind}")
        one, two = ((tmp_path / time / f"figure.{kind}").read_bytes() for time in ("one", "two"))
        assert one.startswith(head)
        assert one == two
    with pytest.raises(ValueError, match="figures are written as png, svg, pdf"):
        save(figures.ir_score_by_n(CURVES), tmp_path / "figure.bmp")
