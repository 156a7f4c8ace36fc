"""Figures: what is drawn, and that no text lies on another."""

from __future__ import annotations

import base64
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from ragauge.estimate import Zone, Zones, fit_thresholds, reliability_curve
from ragauge.show import figures
from ragauge.show.drawing import CLASS_COLOURS, LINE_COLOURS, MARKERS, MISSING_COLOUR, save, svg

PNG = re.compile(rb"data:image/png;base64,([\w+/=\s]+)")
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
    }


@pytest.mark.parametrize("name", ["ir_score_by_n", "judge_shares", "sorted_scores", "floor", "reliability"])
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
    many = pd.concat([OUTCOMES] * 8).assign(qid=lambda f: np.arange(len(f)).astype(str))
    drawn = svg(figures.sorted_scores(many, fit_thresholds(many, n_boot=0), "many"))
    assert len(drawn) < 60_000
    widths = [struct.unpack(">I", base64.b64decode(image)[16:20])[0] for image in PNG.findall(drawn)]
    assert 600 < max(widths) < 800  # pixels: sharp on a screen of double resolution, at 160 per inch


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
    def drawn(n: int) -> Figure:
        frame = pd.DataFrame({"qid": np.arange(n).astype(str), "ir_score": np.linspace(0, 1, n)})
        frame = frame.assign(label=pd.array(np.tile([5, 4], n // 2), dtype="Int8"))
        return figures.sorted_scores(frame, fit_thresholds(frame, n_boot=0), "half and half")

    figure = drawn(4000)
    [band] = figure.axes[0].child_axes
    assert not any(spine.get_visible() for spine in band.spines.values())
    [image] = band.images
    strip = np.asarray(image.get_array())
    assert (strip[: len(strip) // 2] == to_rgb(CLASS_COLOURS[4])).all()
    assert (strip[len(strip) // 2 :] == to_rgb(CLASS_COLOURS[5])).all()
    figure.draw_without_rendering()
    assert band.get_window_extent().y1 < figure.axes[0].get_window_extent().y0  # below the scores
    for n, columns, size, pixels in ((400, 400, 15, False), (1000, 1000, 6, False), (1002, 200, 6, True)):
        axes = drawn(n).axes[0]
        [points] = axes.collections
        assert np.asarray(axes.child_axes[0].images[0].get_array()).shape[1] == columns
        assert (points.get_sizes().tolist(), points.get_rasterized()) == ([size], pixels)


def test_without_verdicts_scores_are_still_drawn() -> None:
    frame = OUTCOMES.assign(label=pd.array([None] * len(OUTCOMES), dtype="Int8"))
    figure = figures.sorted_scores(frame, fit_thresholds(frame, n_boot=0), "no judge")
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["no verdict"]


def test_a_figure_is_written_as_png_svg_and_pdf_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    curve = {"bm25": {100: 0.5, 200: 0.6}}
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, head in begins.items():
        for time in ("one", "two"):
            save(figures.ir_score_by_n(curve), tmp_path / time / f"figure.{kind}")
        one, two = ((tmp_path / time / f"figure.{kind}").read_bytes() for time in ("one", "two"))
        assert one.startswith(head)
        assert one == two
    with pytest.raises(ValueError, match="figures are written as png, svg, pdf"):
        save(figures.ir_score_by_n(curve), tmp_path / "figure.bmp")


def test_every_axis_says_what_it_measures_and_within_which_limits() -> None:
    drawn = {name: figure.axes[0] for name, figure in every_figure().items()}
    told = {
        name: (axes.get_xlabel(), axes.get_ylabel(), axes.get_xlim(), axes.get_ylim()) for name, axes in drawn.items()
    }
    assert told["ir_score_by_n"][:2] == ("N, tokens of what was retrieved", "IR score, mean over topics")
    assert told["ir_score_by_n"][3] == (0, 1.02)
    assert told["ir_score_by_n"][2][0] == 0
    assert told["judge_shares"][0] == "share of topics"
    assert told["judge_shares"][2] == (0, 1)
    assert told["sorted_scores"][1] == "IR score"
    assert told["sorted_scores"][2:] == (pytest.approx((-1.5, 202.5)), (-0.03, 1.03))
    assert told["reliability"] == ("predicted probability", "observed share", (-0.02, 1.02), (-0.02, 1.02))
    for name in ("ir_score_by_n", "reliability"):
        assert drawn[name].get_xgridlines()[0].get_visible(), name
    assert drawn["reliability"].get_box_aspect() == 1


def test_curves_have_a_colour_and_a_marker_each_and_start_again_after_the_last() -> None:
    n = len(LINE_COLOURS) + 2
    curves = {f"s{i}": {100: i / 20, 200: 0.5} for i in range(n)}
    lines = figures.ir_score_by_n(curves, {"s1": {200: 0.4, 100: 0.3}}).axes[0].lines
    own = [line for line in lines if line.get_linestyle() == "-"]
    assert [line.get_color() for line in own] == [*LINE_COLOURS, *LINE_COLOURS[:2]]
    assert [line.get_marker() for line in own] == [*MARKERS, *MARKERS[:2]]
    assert [line.get_ydata()[0] for line in own] == [i / 20 for i in range(n)]
    widths = [line.get_linewidth() for line in own]
    assert widths[0] == pytest.approx(3.6)
    assert widths[-1] == pytest.approx(1.2)
    assert np.allclose(np.diff(widths), (1.2 - 3.6) / (n - 1))
    (study,) = [line for line in lines if line.get_linestyle() == "--"]
    assert study.get_label() == "s1, study"
    assert study.get_linewidth() < min(widths)
    assert study.get_color() == own[1].get_color()
    assert study.get_xdata().tolist() == [100, 200]
    assert study.get_ydata().tolist() == [0.3, 0.4]


def test_a_floor_of_one_budget_is_a_mark_and_one_of_several_a_line() -> None:
    floors = {"a": {100: 0.1}, "b": {200: 0.2, 100: 0.1}, "c": {100: 0.3}}
    lines = figures.ir_score_by_n({"bm25": {100: 0.5}}, floors=floors).axes[0].lines[1:]
    assert [line.get_marker() for line in lines] == [MARKERS[0], "", MARKERS[2]]
    assert lines[1].get_xdata().tolist() == [100, 200]


def test_an_interval_is_a_band_in_the_colour_of_its_curve() -> None:
    bands = {"sim": {200: (0.3, 0.6), 100: (0.2, 0.5)}}
    axes = figures.ir_score_by_n({"bm25": {100: 0.5}, "sim": {100: 0.4, 200: 0.5}}, bands=bands).axes[0]
    (band,) = axes.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices.round(6).tolist()}
    assert corners == {(100, 0.2), (100, 0.5), (200, 0.3), (200, 0.6)}
    assert to_hex(band.get_facecolor()[0]) == to_hex(LINE_COLOURS[1])


def test_bars_of_the_classes_begin_with_right_answers_and_fill_the_width() -> None:
    names = ("bm25", "retriever=sim · N=300")  # one character more than a line has
    axes = figures.judge_shares(shares(*names).assign(judge_share_1=[0.1, 0.02]), "title").axes[0]
    of_first = [bars[0] for bars in axes.containers]
    assert [to_hex(bar.get_facecolor()).upper() for bar in of_first] == [
        *(CLASS_COLOURS[c] for c in (5, 4, 3, 2, 1)), MISSING_COLOUR,
    ]  # fmt: skip
    assert [bar.get_width() for bar in of_first] == pytest.approx([0.3, 0.2, 0.3, 0.05, 0.1, 0.05])
    assert [bar.get_x() for bar in of_first] == pytest.approx([0, 0.3, 0.5, 0.8, 0.85, 0.95])
    assert [text.get_text() for text in axes.texts] == [
        "30%", "30%", "20%", "20%", "30%", "30%", "5%", "5%", "10%", "", "5%", "5%",
    ]  # fmt: skip
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bm25", "retriever=sim ·\nN=300"]
    assert axes.yaxis_inverted()
    without = figures.judge_shares(shares("bm25").assign(judge_share_missing=np.nan), "title").axes[0]
    assert len(without.containers) == 5
    one = figures.judge_shares(shares("bm25", "sim").assign(judge_share_missing=[0.0, 0.05]), "title").axes[0]
    assert len(one.containers) == 6


def test_thresholds_are_lines_and_zones_are_shaded_on_their_side() -> None:
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(8)], "ir_score": [0.1, 0.2, 0.2, 0.3, 0.7, 0.8, 0.9, 1.0],
                          "label": pd.array([1, 1, 1, 1, 5, 5, 5, 5], dtype="Int8")})  # fmt: skip
    right = Zone("above", 5, 0.75, 3, 8, 0.0)
    zones = Zones(right, Zone("below", 1, 0.25, 3, 8, 0.0), alpha=0.1, confidence=0.95, n_topics=8)
    thresholds = fit_thresholds(frame, n_boot=0)
    axes = figures.sorted_scores(frame, thresholds, "a", zones).axes[0]
    labels = [text.get_text() for text in axes.get_figure().legends[0].get_texts()]  # type: ignore[union-attr]
    assert labels == [
        "1 lack of information", "5 right", f"k = {thresholds.k.value:.3f} (right above)",
        f"h = {thresholds.h.value:.3f} (lack below)", "above 0.75: at most 10% not right",
        "below 0.25: at most 10% not lack",
    ]  # fmt: skip
    assert {line.get_label()[0]: line.get_linestyle() for line in axes.lines[-2:]} == {"k": "--", "h": ":"}
    spans = {patch.get_label(): patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches}
    above, below = spans["above 0.75: at most 10% not right"], spans["below 0.25: at most 10% not lack"]
    assert (above.y0, above.y1) == pytest.approx((0.75, 1.03))
    assert (below.y0, below.y1) == pytest.approx((-0.03, 0.25))
    none = Zones(right, Zone("below", 1, float("nan"), 0, 8, float("nan")), alpha=0.1, confidence=0.95, n_topics=8)
    assert len(figures.sorted_scores(frame, thresholds, "a", none).axes[0].patches) == len(axes.patches) - 1


def test_points_of_a_reliability_curve_grow_with_their_bins() -> None:
    curve = pd.DataFrame({"predicted": [0.1, 0.9], "observed": [0.2, 0.8], "n": [10, 40]})
    axes = figures.reliability({"one": curve, "two": curve.assign(n=0)}, "title").axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert [line.get_xydata().tolist() for line in axes.lines[1::2]] == [[[0.1, 0.2], [0.9, 0.8]]] * 2
    first, second = axes.collections
    assert first.get_offsets().tolist() == [[0.1, 0.2], [0.9, 0.8]]
    assert first.get_sizes().tolist() == [14 + 110 / 4, 14 + 110]
    assert second.get_sizes().tolist() == [14, 14]
    entries = dict(zip([t.get_text() for t in axes.get_figure().legends[0].get_texts()],  # type: ignore[union-attr]
                       axes.get_figure().legends[0].legend_handles, strict=True))  # type: ignore[union-attr]  # fmt: skip
    assert list(entries) == ["perfect", "one", "two"]
    assert [entries[name].get_color() for name in ("one", "two")] == list(LINE_COLOURS[:2])  # type: ignore[union-attr]


def test_figures_grow_with_their_legends_and_bars() -> None:
    def height(figure: Figure) -> float:
        return float(figure.get_figheight())

    one, seven = (figures.ir_score_by_n({f"s{i}": {100: 0.5} for i in range(n)}) for n in (1, 7))
    assert [height(one), height(seven)] == pytest.approx([3.4 + 0.2, 3.4 + 0.6])
    floors = {f"f{i}": {100: 0.1} for i in range(3)}
    assert height(figures.ir_score_by_n({"s": {100: 0.5}}, floors=floors)) == pytest.approx(height(one) + 0.2)
    thresholds = fit_thresholds(OUTCOMES, n_boot=0)
    scores = [height(figures.sorted_scores(OUTCOMES, thresholds, "a", floor=floor)) for floor in (None, 0.1)]
    assert scores == pytest.approx([3.4 + 0.2 * 4, 3.4 + 0.2 * 5])
    curve = pd.DataFrame({"predicted": [0.1], "observed": [0.2], "n": [10]})
    lines = [height(figures.reliability({f"s{i}": curve for i in range(n)}, "a")) for n in (2, 3)]
    assert lines == pytest.approx([3.6 + 0.2, 3.6 + 0.4])
    names = ["one", "two", "three", "a name that takes a second line"]
    bars = [height(figures.judge_shares(shares(*names[:n]), "a")) for n in (1, 2, 3, 4)]
    assert bars == pytest.approx([0.8 + 0.4 * lines + 0.6 for lines in (1, 2, 3, 4.24)])
