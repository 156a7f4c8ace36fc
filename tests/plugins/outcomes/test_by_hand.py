"""Twenty-five answers of five systems, three of them judged: what is logged, printed and shown, worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragauge.contract.errors import DataError
from ragauge.plugins.outcomes.dataset import RecordedOutcomes
from ragauge.plugins.outcomes.finding import Recorded, foreseen_figure
from sweep_records import record_of

# By system, answers as score, label, user (the cluster; nobody: a cluster of its own).
ANSWERS = {
    "b": [(0.1, "", "u1"), (0.7, "", "u2"), (0.9, "", "u3"), (0.65, "", "u4")],
    "a": [(0.0, 1, "u1"), (0.1, 1, "u1"), (0.1, 1, "u2"), (0.2, 1, "u3"), (0.2, 4, ""), (0.3, "", "u4"),
          (0.4, 4, "u4"), (0.5, 2, "u5"), (0.6, 5, "u6"), (0.7, 5, "u6"), (0.8, 5, "u7"), (0.8, 5, "u8"),
          (0.9, 5, "u9"), (0.9, 1, ""), (1.0, 5, ""), (1.0, 5, "")],
    "c": [(0.0, "", "u1"), (0.1, "", "u2"), (0.3, "", "u3")],
    "d": [(0.9, 5, "u1")], "e": [(0.2, 5, "u2")],
}  # fmt: skip
SHARES = {"b": [0.1, 0.0, 0.1, 0.2, 0.6]}  # of the classes 1 to 5, known from elsewhere
RECORD = {
    "bootstrap": 20,
    "seed": 0,
    "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
    "zones": {"alpha": 0.5, "confidence": 0.8},
}


def recorded(folder: Path, **changes: object) -> Recorded:
    rows = [f"{system},{user},{label},{score}" for system, of in ANSWERS.items() for score, label, user in of]
    (folder / "o.csv").write_text("\n".join(["system,user,label,ir_score", *rows]), encoding="utf-8")
    source = RecordedOutcomes(path=folder / "o.csv", judged_shares=SHARES)
    return Recorded.of(source.outcomes("user"), source.judged_shares, record_of(RECORD, **changes), "o.csv")


@pytest.fixture(scope="module")
def value(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("recorded"))


def test_metrics_and_tables_are_of_the_judged_systems(value: Recorded) -> None:
    found = value.found("exp", "a note")
    # 18 rows of a, d and e, 17 of them with a verdict: 9 are right, 5 lack, 3 are between.
    # Above k = 0.55 nine stand, of which 8 are right, and one right answer is not: 15 of 17 as the threshold says.
    for name, expected in {
        "topics": 18, "ir_score": 9.6 / 18, "correct_share": 9 / 18, "judge_share_1": 5 / 18,
        "judge_share_missing": 1 / 18, "threshold_k": 0.55, "threshold_k_accuracy": 15 / 17,
        "threshold_h": 0.15, "threshold_h_accuracy": 15 / 17,
        "zone_right_above": 0.3, "zone_right_share": 11 / 18, "zone_right_missed": 3 / 11, "zone_lack_share": 0,
        "unjudged_right_mae_thresholds": 3 / 4 - 0.6, "unjudged_right_mae_unchanged": 0.6 - 9 / 17,
        "unjudged_lack_mae_thresholds": 1 / 4 - 0.1, "unjudged_lack_mae_unchanged": 5 / 17 - 0.1,
    }.items():  # fmt: skip
        assert found.metrics[name] == pytest.approx(expected), name
    # Over the 13 clusters; of 18 answers, each for itself, it would be 0.378 to 0.682.
    assert (found.metrics["ir_score_lo"], found.metrics["ir_score_hi"]) == pytest.approx((0.344, 0.714), abs=0.001)
    assert not any("between" in name for name in found.metrics)
    foreseen = found.tables["foreseen"].drop(columns="predictor").to_numpy().tolist()
    expected_rows = [
        ["b", "right", 3 / 4, 9 / 17, 0.6, 4], ["b", "between", 0, 3 / 17, 0.3, 4],
        ["b", "lack", 1 / 4, 5 / 17, 0.1, 4],
        ["c", "right", 0, 9 / 17, np.nan, 3], ["c", "between", 1 / 3, 3 / 17, np.nan, 3],
        ["c", "lack", 2 / 3, 5 / 17, np.nan, 3],
    ]  # fmt: skip
    for row, expected_row in zip(foreseen, expected_rows, strict=True):
        assert row[:2] == expected_row[:2]
        assert row[2:] == pytest.approx(expected_row[2:], nan_ok=True)
    zones = found.tables["zones_by_alpha"]
    assert zones["alpha"].tolist() == [alpha for alpha in (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5) for _ in range(2)]
    assert zones["zone"].tolist() == ["right", "lack"] * 7
    assert zones.iloc[12].tolist() == [0.5, "right", 0.3, pytest.approx(11 / 18), pytest.approx(3 / 11)]
    assert zones["threshold"].isna().sum() == 13


def test_the_lines_of_the_terminal(value: Recorded, tmp_path: Path) -> None:
    lines = value.lines
    predicted = value.foreseen.query("share == 'right'").set_index("system")["predictor"]
    assert re.fullmatch(r"intervals over 13 clusters of topics are 1\.\d\d times as wide", lines[0])
    assert [line[:25] for line in lines[1:3]] == ["h = 0.150, lack below: 5.", "k = 0.550, right above: 2"]
    assert lines[3:] == [
        "zones (80% confidence): above 0.30 (61.1% of the answers) at most 50% not right; none for lack",
        "predictor, on unseen topics: AUC {predictor_auc_correct:.3f} for right answers, "
        "{predictor_auc_lack:.3f} for lack".format(**value.estimates.metrics),
        f"right answers of b: predictor {predicted['b']:.1%}, above k 75.0%, judged 60.0%",
        f"right answers of c: predictor {predicted['c']:.1%}, above k 0.0%",
    ]
    calibrated = {**RECORD["estimate"], "calibrate": True}  # by folds, which the seed draws
    one, other = (recorded(tmp_path, bootstrap=30, seed=seed, estimate=calibrated) for seed in (0, 2))
    assert one.lines[3] == other.lines[3] == lines[3]
    assert one.estimates.metrics["threshold_k_lo"] != other.estimates.metrics["threshold_k_lo"]
    assert one.foreseen["predictor"].tolist() != other.foreseen["predictor"].tolist()
    (tmp_path / "empty.csv").write_text("label,ir_score\n,0.5\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"o\.csv: no row has a label"):
        Recorded.of(RecordedOutcomes(path=tmp_path / "empty.csv").outcomes(), {}, record_of(RECORD), "o.csv")


def rows_of(page: str, table: str) -> list[list[str]]:
    """The cells of a table of the report, as texts."""
    body = page.split(f'aria-label="{table}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    cells: Callable[[str], list[str]] = lambda row: re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)  # noqa: E731
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells(row)] for row in body.split("<tr>")[1:]]


def test_the_report_has_a_row_for_each_system_and_promise(value: Recorded, tmp_path: Path) -> None:
    found = value.found("exp", "a note")
    assert list(found.files) == ["figures/sorted_scores.png", "figures/foreseen.png", "report.html"]
    found.files["report.html"](tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<p>a note</p>" in page
    assert page.count("<h2") == 4
    assert rows_of(page, "Systems") == [
        ["b", "4", "0.588", "–", "–"],
        ["a", "16", "0.531", "43.8 %", "31.2 %"],
        ["c", "3", "0.133", "–", "–"],
        ["d", "1", "0.900", "100.0 %", "0.0 %"],
        ["e", "1", "0.200", "100.0 %", "0.0 %"],
    ]
    alphas = rows_of(page, "Zones by what may be missed")
    assert alphas[1] == ["5.0 %", "lack, below", "none", "0.0 %", "–"]
    assert alphas[12] == ["50.0 %", "right, above", "0.300", "61.1 %", "27.3 %"]
    thresholds = rows_of(page, "Thresholds")
    assert [row[0] for row in thresholds] == ["h lack of information below", "k right above"]
    t = value.estimates.thresholds
    for row, one, base in zip(thresholds, (t.h, t.k), ("70.6 %", "58.8 %"), strict=True):
        assert row[1] == f"{one.value:.3f} {one.lo:.3f} to {one.hi:.3f}"
        assert row[2:5] == [f"{one.set_min:.3f} to {one.set_max:.3f}", "88.2 %", base]
        assert row[5].startswith(f"{100 * one.gain.value:+.1f} ".replace("-", "−"))
        assert ("useful" in row[5]) == one.useful
    predicted = [f"{100 * share:.1f} %" for share in value.foreseen["predictor"]]
    assert rows_of(page, "Foreseen shares") == [
        ["b", "right", predicted[0], "75.0 %", "52.9 %", "60.0 %"],
        ["b", "between", predicted[1], "0.0 %", "17.6 %", "30.0 %"],
        ["b", "lack", predicted[2], "25.0 %", "29.4 %", "10.0 %"],
        ["c", "right", predicted[3], "0.0 %", "52.9 %", "–"],
        ["c", "between", predicted[4], "33.3 %", "17.6 %", "–"],
        ["c", "lack", predicted[5], "66.7 %", "29.4 %", "–"],
    ]
    e = value.estimates.validation.estimates
    texts = [f"{e[n].value:.3f} ({e[n].lo:.3f} to {e[n].hi:.3f})" for n in ("auc_correct", "auc_lack", "log_loss")]
    said = f"AUC of right {texts[0]}, AUC of lack {texts[1]}, log loss {texts[2]}, without the score "
    assert said + f"{e['log_loss_base'].value:.3f}." in page
    alone = recorded(tmp_path)
    judged = Recorded.of(alone.judged, {}, record_of(RECORD), "o.csv").found("exp", "")
    assert list(judged.files) == ["figures/sorted_scores.png", "report.html"]
    judged.files["report.html"](tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<h2") == 3
    assert "<p></p>" not in page


def test_the_figure_has_a_point_for_each_way_of_each_system(value: Recorded) -> None:
    axes = foreseen_figure(value.foreseen).axes[0]
    points = [np.ma.filled(of.get_offsets().astype(float), np.nan).tolist() for of in axes.collections]
    predicted = value.foreseen.query("share == 'right'")["predictor"]
    expected = [(60.0, np.nan), 100 * predicted, (75.0, 0.0), (900 / 17, 900 / 17)]
    for found, (b, c) in zip(points, expected, strict=True):
        assert [x for x, y in found if y == y] == [at for at, y in enumerate((b, c)) if y == y]
        assert [y for _, y in found] == pytest.approx([b, c], nan_ok=True)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["b", "c"]
    assert axes.get_xlim() == (-0.5, 1.5)
    assert axes.get_ylim()[0] == 0
    assert axes.get_ygridlines()[0].get_visible()
    assert not axes.get_xgridlines()[0].get_visible()
    assert [text.get_text() for text in axes.get_figure().legends[0].get_texts()] == [
        "what the judge found", "predictor", "share of scores above k", "as in the judged system",
    ]  # fmt: skip
