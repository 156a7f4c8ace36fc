"""The figure and the numbers of docs/evidence.md, from the shipped facts: `python docs/evidence.py`."""

from __future__ import annotations

from pathlib import Path

from ragauge.estimate import fit_thresholds
from ragauge.estimate.prediction import foresee, foreseen_errors
from ragauge.findings.study import JUDGE_SHARES
from ragauge.plugins.outcomes.dataset import StudyOutcomes
from ragauge.plugins.outcomes.finding import foreseen_figure
from ragauge.show.drawing import save

FIGURE = Path(__file__).parent / "figures" / "evidence.png"
PUBLISHED_H, PUBLISHED_K = 0.105, 0.67


def main() -> None:
    """Writes the figure and prints what the table of docs/evidence.md holds beside the job's own metrics."""
    rows = StudyOutcomes().outcomes()
    judged, others = rows[rows["system"] == "bm25"], rows[rows["system"] != "bm25"]
    fitted = fit_thresholds(judged, n_boot=0)
    for name, h, k, calibrate in (
        ("thresholds fitted", fitted.h.value, fitted.k.value, False),
        ("thresholds published", PUBLISHED_H, PUBLISHED_K, False),
        ("predictor isotonic", PUBLISHED_H, PUBLISHED_K, True),
    ):
        table = foresee(judged, others, h, k, JUDGE_SHARES, calibrate=calibrate)
        print(f"\n{name}: h {h:.3f}, k {k:.3f}")
        print(table[table["share"] != "between"].round(3).to_string(index=False))
        print({error: round(value, 3) for error, value in foreseen_errors(table).items()})
        if name == "thresholds published":
            save(foreseen_figure(table), FIGURE)
    for letter, side, target in (("k", "above", 5), ("h", "below", 1)):
        t = PUBLISHED_K if letter == "k" else PUBLISHED_H
        said = judged["ir_score"] > t if side == "above" else judged["ir_score"] < t
        print(f"published {letter} = {t}: accuracy {(said == judged['label'].eq(target)).mean():.3f}")


if __name__ == "__main__":
    main()
