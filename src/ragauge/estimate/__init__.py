"""Statistics on frames of outcomes: thresholds, predictor, intervals, tests, judged samples."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.estimate._scoring import reliability_curve
    from ragauge.estimate.agreement import Agreement, Stability, judge_agreement, judge_stability
    from ragauge.estimate.board import leaderboard, share_estimates
    from ragauge.estimate.intervals import Estimate, bootstrap_mean, bounded_mean
    from ragauge.estimate.outcomes import HEADLINE_SHARES, asked, class_shares
    from ragauge.estimate.pairs import compare_pairs
    from ragauge.estimate.ppi import cross_fit, ppi_shares
    from ragauge.estimate.predictor import Predictor, fit_predictor
    from ragauge.estimate.sampling import choose_topics
    from ragauge.estimate.thresholds import Threshold, Thresholds, fit_threshold, fit_thresholds, share_by_zone
    from ragauge.estimate.validation import CrossValidation, cross_validate
    from ragauge.estimate.zones import Zone, Zones, fit_zones

__all__ = [
    "HEADLINE_SHARES",
    "Agreement",
    "CrossValidation",
    "Estimate",
    "Predictor",
    "Stability",
    "Threshold",
    "Thresholds",
    "Zone",
    "Zones",
    "asked",
    "bootstrap_mean",
    "bounded_mean",
    "choose_topics",
    "class_shares",
    "compare_pairs",
    "cross_fit",
    "cross_validate",
    "fit_predictor",
    "fit_threshold",
    "fit_thresholds",
    "fit_zones",
    "judge_agreement",
    "judge_stability",
    "leaderboard",
    "ppi_shares",
    "reliability_curve",
    "share_by_zone",
    "share_estimates",
]

__getattr__ = lazily(__name__)
