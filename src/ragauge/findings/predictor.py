"""The predictor of judge classes: what it is worth on topics that it has not seen."""

from __future__ import annotations

from typing import Any

from ragauge.contract.finding import (
    Card,
    Cell,
    Finding,
    Found,
    Founds,
    Grid,
    Num,
    Picture,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.jobs import Jobs
from ragauge.show.figures import reliability
from ragauge.show.formats import score


class PredictorFound(Finding):
    """What the predictor of judge classes is worth on topics that it has not seen."""

    name = "predictor"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The cross-validation of the fit; its metrics are those of `thresholds`."""
        return Found(found["thresholds"].estimates.validation) if "thresholds" in found else None

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """Measures and reliability, out of fold."""
        e, curve = value.estimates, value.reliability
        figure = reliability({"P(5, right)": curve[curve["n"] > 0]}, "Out-of-fold reliability of the predictor")
        blocks = [
            Text(
                "A multinomial logistic regression gives the probability of each class from the IR score. All "
                f"numbers are of topics that it had not seen ({value.n_splits}-fold cross-validation by topic). An "
                "interval is about what predictors fitted on as many topics reach on average; this very one may do "
                "better or worse."
            ),
            Picture(
                "reliability",
                "Predicted probability of a right answer against the observed share, in ten bins",
                "Reliability: on the dashed line, of the answers with a predicted probability of 0.3 three in ten "
                "are right. The area of a point grows with the rows in its bin.",
            ),
            _measures(e),
        ]
        auc = e["auc_correct"]
        known = f"{score(auc.lo)} to {score(auc.hi)}; " if auc.lo == auc.lo else ""
        card = Card("IR score tells right answers apart", f"AUC {score(auc.value)}", f"{known}0.5 is chance")
        return Shown(
            [Section("Reliability of the predictor", blocks)], [predictor_line(value)], {"reliability": figure}, [card]
        )


def predictor_line(validation: Any) -> str:
    """What the predictor is worth, in a line for the terminal."""
    e = validation.estimates
    return (
        f"predictor, on unseen topics: AUC right {e['auc_correct'].value:.3f}, "
        f"AUC lack {e['auc_lack'].value:.3f}, log loss {e['log_loss'].value:.3f} "
        f"(base rate {e['log_loss_base'].value:.3f})"
    )


_MEASURES = (
    ("AUC, right or not", "", "auc_correct", "0.500", "higher"),
    ("AUC, lack of information or not", "", "auc_lack", "0.500", "higher"),
    ("Log loss, nats", "", "log_loss", "log_loss_base", "lower"),
    ("Brier score", "", "brier", "brier_base", "lower"),
    ("Calibration error of P(right), less its noise", "below 0: nothing but noise", "ece", "–", "nearer to 0"),
    ("Slope of calibration", "under 1: probabilities too far apart", "calibration_slope", "–", "nearer to 1"),
    (
        "Intercept of calibration, logits",
        "above 0: right more often than predicted",
        "calibration_intercept",
        "–",
        "nearer to 0",
    ),
)


def _measures(estimates: Any) -> Grid:
    columns = "Measure | Predictor | Without the score | <Better is"

    def cell(name: str) -> Any:
        e = estimates.get(name) if name in estimates else None
        return name if e is None else Num(e.value, "score", e.lo, e.hi)

    rows: list[list[Cell]] = [
        [Tagged(title, below=note), cell(name), cell(base), better] for title, note, name, base, better in _MEASURES
    ]
    return Grid("Measures of the predictor", columns, rows)
