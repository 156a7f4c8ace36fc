"""The plan from a pilot: topics by pair of systems, labels by system."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import column_label
from ragauge.contract.checks import require_number
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import HEADLINES, METRICS
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.visible import table, visible
from ragauge.estimate.outcomes import with_classes
from ragauge.estimate.plan import ALPHA, POWER, alike
from ragauge.findings.terminal import alike_sentences
from ragauge.plugins.planning.labels import plan_labels
from ragauge.plugins.planning.repeats import lines_of_repeats, plan_repeats
from ragauge.plugins.planning.topics import CONFIDENCE, plan_topics

_SHOWN = 12  # pairs in the table, beside the worst and the median
_KINDS = {"alone": "alone", "judge": "people, with the judge", "predictor": "judged, with the predictor"}


@dataclass(frozen=True)
class Asked:
    """The goal of a study: a difference or equivalence with a power, and an interval of a width; each in [0, 1].

    difference: the one to see; equivalent: the margin within which equal systems are to be shown equal. One of both.
    correction: `holm` plans each test at alpha over `comparisons` (by default all pairs of the pilot), `none`
    at alpha. topics: those of the study whose labels are planned, by default as many as the pilot has.
    topic_price: US dollars of a topic beside its answers.
    """

    difference: float | None = None
    power: float = POWER
    alpha: float = ALPHA
    measure: str = "ir_score"
    width: float = 0.1
    correction: str = "holm"
    comparisons: int | None = None
    topics: int | None = None
    confidence: float = CONFIDENCE
    equivalent: float | None = None
    topic_price: float = 0.0

    def __post_init__(self) -> None:
        if (self.difference is None) == (self.equivalent is None):
            raise ConfigError("a plan takes a difference or a margin of equivalence, and not both")
        if self.equivalent is not None:
            require_number("equivalent", self.equivalent, 0, 1, above=True)
        require_number("topic-price", self.topic_price, 0)

    @property
    def margin(self) -> float:
        """The difference, or the equivalence margin."""
        return self.equivalent if self.difference is None else self.difference  # type: ignore[return-value]


@dataclass(frozen=True)
class StudyPlan:
    """The plan from one pilot: `pairs`, `labels` and `repeats` from `plan_topics`, `plan_labels` and `plan_repeats`.

    n_classed: the pilot's topics that count in shares of classes. n_clusters: those of its topics; None where they are
    independent.
    cannot_tell: where all systems of the pilot score alike, that its topics cannot tell them apart, and which
    could; "" elsewhere.
    """

    asked: Asked
    experiment: str
    sweep_id: str
    n_tokens: int
    n_topics: int
    n_classed: int
    n_clusters: int | None
    comparisons: int
    pairs: pd.DataFrame
    labels: pd.DataFrame
    repeats: pd.DataFrame
    cannot_tell: str = ""

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON values; null if no number suffices or is known."""
        frames = {"pairs": self.pairs, "labels": self.labels, "repeats": self.repeats}
        return {
            **{name: getattr(self, name) for name in ("experiment", "sweep_id", "n_tokens", "n_topics", "n_clusters")},
            "cannot_tell": self.cannot_tell,
            "asked": asdict(self.asked) | {"comparisons": self.comparisons},
            **{
                name: [
                    {key: None if _unknown(value) else value for key, value in row.items()}
                    for row in frame.to_dict("records")
                ]
                for name, frame in frames.items()
            },
        }


def plan(sweep: Jobs, asked: Asked) -> StudyPlan:
    """The topics and labels of a study like the sweep; ConfigError and DataError as in `plan_topics` and
    `plan_labels`."""
    rows = sweep.outcomes[sweep.outcomes["n_tokens"] == sweep.n_tokens]
    n_topics = int(rows["qid"].nunique())
    if n_topics < 2:
        raise DataError(f"pilot {sweep.sweep_id}: {n_topics} topic(s); a variance takes at least 2")
    systems = rows["system"].nunique()
    pairs_of_pilot = systems * (systems - 1) // 2
    comparisons = pairs_of_pilot if asked.comparisons is None else asked.comparisons
    equal = asked.equivalent is not None
    if asked.correction == "none" or equal:
        if asked.comparisons is not None:
            raise ConfigError(
                "--comparisons: only with --correction holm of a --difference, which divides alpha by them"
            )
        comparisons = 1
    seed = sweep.records[0].seed
    pairs = plan_topics(
        rows,
        asked.measure,
        asked.margin,
        asked.power,
        asked.alpha,
        comparisons=comparisons if pairs_of_pilot else 1,
        confidence=asked.confidence,
        answers=sweep.answer_measures,
        equal=equal,
    )
    labels = plan_labels(
        rows,
        asked.width,
        n_topics=asked.topics,
        confidence=asked.confidence,
        seed=seed,
        estimate=sweep.records[0].estimate,
    )
    same = alike(rows, answers=sweep.answer_measures)
    cannot_tell = alike_sentences(_name(asked.measure, sweep), same[asked.measure]) if asked.measure in same else []
    n_clusters = rows[CLUSTER].nunique() if CLUSTER in rows else None
    n_classed = int(with_classes(rows)["qid"].nunique())
    names = (sweep.experiment, sweep.sweep_id, sweep.n_tokens, n_topics, n_classed, n_clusters)
    repeats = plan_repeats(sweep, asked.topic_price)
    return StudyPlan(asked, *names, comparisons, pairs, labels, repeats, " ".join(cannot_tell))


def _name(measure: str, sweep: Jobs) -> str:
    infos = {info.name: info for info in sweep.answer_measures}
    return METRICS[measure].words if measure in HEADLINES else column_label(infos[measure])


def plan_text(plan: StudyPlan, sweep: Jobs) -> str:
    """The plan for a terminal."""
    a = plan.asked
    sure = f"{a.confidence:.0%} sure"
    lines = [f"Pilot {visible(plan.experiment, one_line=True)}: {plan.n_topics} topics, N = {plan.n_tokens} tokens"]
    if plan.n_clusters is not None:
        lines.append(
            f"The topics are in {plan.n_clusters} clusters: the numbers are of topics in clusters of the same size, "
            f"{plan.n_topics / plan.n_clusters:.1f} each"
        )
    if plan.pairs.empty:
        lines.append("one system: no pair to compare, so no number of topics")
    elif plan.cannot_tell:
        lines.append(f"{plan.cannot_tell} So this pilot gives no number of topics.")
    else:
        equal = a.equivalent is not None
        share = a.measure in ("correct", "hallucination") and not equal and plan.n_clusters is None
        spread = "one of both only" if share else "SD of difference"
        each = f"{a.alpha:.3g}" + (f" / {plan.comparisons}" if plan.comparisons > 1 else "")
        name = _name(a.measure, sweep)
        goal = f"show that systems do not differ by {a.margin:g}" if equal else f"see a difference of {a.margin:g}"
        tests = "two one-sided tests" if equal else "two-sided test"
        lines.append(f"\nTopics to {goal} in {name} with power {a.power:g} ({tests} at {each})")
        rows = [("", "pair", spread, "topics", sure)]
        count = len(plan.pairs)
        chosen = [("median", count // 2), ("worst", count - 1)]
        if count > 1:
            chosen += [("", at) for at in range(count)][: _SHOWN if count > _SHOWN else count]
        for what, at in chosen if count > 1 else [("", 0)]:
            row = plan.pairs.iloc[at]
            seen = f"{row.spread:.1%}" if share else f"{row.spread:.3f}"
            pair = f"{row.a} – {row.b}"
            rows.append((what, pair, seen, _count(row.topics), _count(row.topics_upper)))
        lines.append(table(rows, right=(2, 3, 4)))
        if count > _SHOWN:
            lines.append(f"and {count - _SHOWN} more pairs: --json")
        if unknown := int(plan.pairs["topics"].isna().sum()):
            lines.append(
                f"{unknown} pair(s) without a spread on these topics: this pilot cannot tell how many topics they "
                f"take. It is {sure} that those of the last column are enough; a larger pilot may show fewer"
            )
    if plan.labels.empty:
        lines.append("\nno verdicts: no number of labels")
    else:
        total = a.topics or plan.n_classed
        lines.append(
            f"\nLabels for an interval of width {a.width:g} of the share of right answers (95 %; "
            f"the judge or the predictor on {total:,} topics)"
        )
        needed = [("system", "right", "labels", "correlation", "number", sure)]
        for found in plan.labels.to_dict("records"):
            numbers = (_count(found["labels"], total), _count(found["labels_upper"], total))
            rho = "" if found["kind"] == "alone" else f"{found['correlation']:.2f}"
            needed.append((str(found["system"]), f"{found['share']:.1%}", _KINDS[found["kind"]], rho, *numbers))
        lines.append(table(needed, right=(1, 3, 4, 5)))
        lines += _widths(plan, total)
    lines += lines_of_repeats(plan.repeats, a.topic_price)
    lines.append(
        f"\n“{sure}”: from a confidence limit of what the pilot measured, as {plan.n_topics} topics do not "
        "tell it exactly"
    )
    return "\n".join(lines)


def _widths(plan: StudyPlan, total: int) -> list[str]:
    """Lines with the interval widths for samples of n topics; none for a pilot without a predictor."""
    of = plan.labels[plan.labels["widths"].map(len) > 0]
    if of.empty:
        return []
    sizes = [n for n, _, _ in of["widths"].iloc[0]]
    rows = [("system", "about", *(f"n = {n:,}" for n in sizes))]
    for found in of.to_dict("records"):
        for at, about in ((1, "the population"), (2, "these topics")):
            rows.append((str(found["system"]), about, *(f"{widths[at]:.3f}" for widths in found["widths"])))
    return [
        f"\nWidth of that interval if n of {total:,} topics are answered and judged (llm.sample=n, sample_target)",
        table(rows, right=tuple(range(2, 2 + len(sizes)))),
    ]


def _unknown(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _count(value: float, of: int | None = None) -> str:
    """A number of topics as text, also if unknown or beyond all numbers."""
    if value != value:
        return "unknown"
    return f"{int(value):,}" if math.isfinite(value) else "none is enough" if of is None else f"over {of:,}"
