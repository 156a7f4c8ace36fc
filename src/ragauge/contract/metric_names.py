"""The names of ragauge's own metrics, as MLflow shows them: what a gate may name is known before any work.

A `*` stands for what only a job knows (a stage, a day). Beside these a job has its answer measures
(`AnswerMeasureInfo.name` with `MEASURE_ENDS`), its measures of rankings, its slices, and what its components
count. docs/method.md says what each metric is.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ragauge.contract.groups import CALLS

MEASURE_ENDS = (
    "", "_lo", "_hi", "_missing", "_no_claims", "_repeat_difference", "_repeat_difference_lo",
    "_repeat_difference_hi", "_repeat_topics", "_repeat_missing",
)  # fmt: skip
# Of what follows from verdicts: without a verdict the metrics of these are no values.
OF_VERDICTS = (
    "correct_share", "hallucination_share", "rejection_share", *(f"judge_share_{c}" for c in range(1, 6)),
)  # fmt: skip


def _spelled(*texts: str) -> tuple[str, ...]:
    """The names that texts with alternatives stand for: a{,_lo} is a and a_lo."""
    found = []
    for text in texts:
        parts = re.split(r"\{([^}]*)\}", text)
        choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
        found += ["".join(chosen) for chosen in itertools.product(*choices)]
    return tuple(found)


_ESTIMATES = _spelled(
    "threshold_{h,k}{,_lo,_hi,_set_min,_set_max,_accuracy,_base_rate,_degenerate,_gain,_gain_lo,_gain_hi}",
    "zone_right_{above,share,missed}",
    "zone_lack_{below,share,missed}",
    "predictor_{log_loss,log_loss_base,brier,brier_base,ece,calibration_slope,calibration_intercept}",
    "predictor_auc_{correct,lack}",
    "human_labels",
    "judge_{kappa,agreement}{,_lo,_hi}",
)
_COSTS = tuple(
    f"{who}{what}"
    for who in CALLS
    for what in (
        "llm_calls", "llm_calls_cached", "llm_usage_unknown", "prompt_tokens", "completion_tokens",
        "cost_usd",
    )
)  # fmt: skip

OF_JOBS = (
    *_spelled(
        "ir_score{,_lo,_hi,_floor}",
        "{correct_share,hallucination_share,rejection_share}{,_lo,_hi}",
        "judge_share_{1,2,3,4,5,missing}{,_lo,_hi}",
        "judged_topics",
        "correct_share_prompt_*",
        "judge_prompt_spread",
        "{correct,hallucination}_share_{effective_n,classical,classical_lo,classical_hi}",
        "human_{correct,hallucination}_share{,_lo,_hi,_effective_n,_classical}",
        "ares_{context_relevance,answer_faithfulness,answer_relevance}_{ppi,labels_only}{,_lo,_hi}",
        "ares_{context_relevance,answer_faithfulness,answer_relevance}_{labels,ppi_effective_n,ppi_lambda}",
        "judge_repeat_{pairs,topics}",
        "judge_{repeat,reorder}_{agreement,kappa}{,_lo,_hi}",
        "judge_position_effect{,_lo,_hi}",
        "predicted_{share_1,share_2,share_3,share_4,share_5,correct_share,hallucination_share}{,_lo,_hi}",
        "predicted_outside_share",
        "unjudged_{right,lack}_mae_{predictor,thresholds,unchanged}",
        "topics{,_skipped,_without_evidence,_lost_evidence,_without_reference,_unanswerable}",
        "traces_{failed,without_retriever,rounds}",
        "rewriter_{failed,similarity,new_hits}",
        "retriever_failed",
        "compressor_{ratio,failed}",
        "reranker_{pairs,pairs_cached,repaired,failed}",
        "ann_recall_at_10",
        "context_tokens",
        "cost_usd_per_topic",
        "recorded_{cost_usd,prompt_tokens,completion_tokens,seconds_p50,seconds_p95}",
        "latency_*_{p50,p95}",
        "latency_{topics,failed}",
        "n_chunks",
        "stages_made",
        "seconds_{total,per_topic,*}",
        "funnel_{corpus,best_chunk,candidates,reranked,expanded,compressed,context}{,_change}{,_lo,_hi}",
        "failure_*_share{,_lo,_hi}",
        "measure_failed",
        "bleu_corpus",
        "answers_*_llm_calls{,_cached}",
    ),
    *_ESTIMATES,
    *_COSTS,
)

# Of the MLflow run that pools a sweep.
OF_SWEEPS = (
    *_spelled(
        "transfer{,_*}_{mae,mae_lo,mae_hi,mae_base,mae_perfect,kendall_tau}",
        "best_set_size_*",
        "foresight_{auc_right,auc_lack,spearman,kendall}/*",
        "robustness_{noise_drop,rejection,integration,detected,corrected,fooled}{,_lo,_hi}{,/*}",
        "robustness_contradicted_{detected,corrected,fooled}{,_lo,_hi}{,/*}",
        "robustness_order_in_{answer,context}{,_lo,_hi}{,/*}",
        "top_optimism_*",
        "detectable_difference_*",
        "jobs{,_failed}",
        "seconds_{jobs,pooled}",
    ),
    *_ESTIMATES,
    *_COSTS,
)

# Step charts, which are no single value.
CHARTS = _spelled(
    "{ir_score,ir_score_floor}_at_n{,/*}",
    "correct_share_at_n/*",
    "threshold_{h,k}_at_n",
    "*_at_day",
    "tokens",
)


_OF_PACKAGES_TAG = "ragauge.metrics"  # of an MLflow run


def as_tag(names: Sequence[str]) -> dict[str, str]:
    """The tag by which a job's run names the metrics of findings that packages bring; {} where there are none."""
    return {_OF_PACKAGES_TAG: json.dumps(list(names))} if names else {}


def from_tags(tags: Mapping[str, str]) -> list[str]:
    """The names in the tags of a run; [] where there are none, or the tag cannot be read."""
    try:
        return [str(name) for name in json.loads(tags.get(_OF_PACKAGES_TAG, "[]"))]
    except (ValueError, TypeError):
        return []


def is_known(name: str, known: Iterable[str]) -> bool:
    """Whether a metric's name is one of the known names, or of the form of one with a `*`."""
    return any(name == one or ("*" in one and fnmatchcase(name, one)) for one in known)


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like one that is not known, as " Did you mean ...?"; "" for none."""
    close = difflib.get_close_matches(name, [one for one in known if "*" not in one], n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def measure_metrics(names: Iterable[str]) -> list[str]:
    """The metrics of answer measures of these names."""
    return [f"{name}{end}" for name in names for end in MEASURE_ENDS]
