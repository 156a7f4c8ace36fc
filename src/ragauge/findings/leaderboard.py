"""The leaderboard: shares and scores of all systems, paired tests, and the set that may be the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.families import NOT_SIMULTANEOUS
from ragauge.contract.finding import (
    Card,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Num,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.groups import AROUND_RETRIEVER
from ragauge.contract.jobs import Jobs, settings_of
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import (
    CORRECT,
    HALLUCINATION,
    HEADLINES,
    IR_SCORE,
    LEAST_JUDGED,
    METRICS,
    REJECTION,
    Metric,
    capitalised,
)
from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate import compare_pairs, leaderboard
from ragauge.estimate import summary as metrics_of
from ragauge.estimate.best import BestSystems, best_sets
from ragauge.estimate.plan import alike, detectable_differences
from ragauge.findings.tables import SHORT, number, table
from ragauge.findings.terminal import (
    alike_sentences,
    common_text,
    detectable_text,
    families_text,
    leaderboard_text,
    scorable_topics,
    scored,
    valued,
)
from ragauge.show.formats import interval, score, whole, written

_RANKED_BY = 3  # measures of rankings in a leaderboard that has nothing else
_MARK = "≈ best"
_MOST = {
    "ir_score": f"best {IR_SCORE.words}",
    "correct": f"most {CORRECT.words}",
    "hallucination": f"fewest {HALLUCINATION.words}",
}


@dataclass(frozen=True)
class Board:
    """frame: of `leaderboard`, a row per system; pairs: of `compare_pairs`; best: of `best_sets`.

    detectable: that of `detectable_differences`; alike: that of `alike`. infos: the answer measures. retrieve_alike:
    whether no two systems differ in a part that retrieves.
    """

    frame: pd.DataFrame
    pairs: pd.DataFrame
    best: BestSystems
    detectable: pd.DataFrame
    alike: Mapping[str, float] = field(default_factory=dict)
    infos: Sequence[AnswerMeasureInfo] = ()
    retrieve_alike: bool = False

    @property
    def judged(self) -> bool:
        """Whether any system has verdicts."""
        return bool(self.frame["correct_share"].notna().any())

    @property
    def scored(self) -> bool:
        """Whether any system has an IR score."""
        return bool(self.frame["ir_score"].notna().any())

    @property
    def systems(self) -> list[str]:
        """The systems, the best first."""
        return [str(name) for name in self.frame["system"]]

    @property
    def headline(self) -> str | None:
        """The first measure of comparison: right answers, else the IR score, else an answer measure."""
        known = {"correct": self.judged, "ir_score": self.scored}
        known |= {info.name: bool(self.frame[info.name].notna().any()) for info in self.infos}
        return next((measure for measure, there in known.items() if there), None)

    def label_of(self, measure: str) -> str:
        """The name of a measure in a sentence, with its questions if some are unanswerable."""
        if measure == "correct" and "rejection_share" in self.frame:
            return "right answers to answerable questions"
        if measure in HEADLINES:
            return METRICS[measure].words
        return next(info.label for info in self.infos if info.name == measure)

    def alike_sentences(self, measure: str) -> list[str]:
        """Sentences if these topics cannot distinguish the systems by a measure, with a remedy; else []."""
        if measure not in self.alike:
            return []
        return alike_sentences(self.label_of(measure), self.alike[measure], self.retrieve_alike)


class Leaderboard(Finding):
    """The leaderboard of a sweep, its first result."""

    name = "leaderboard"
    metrics = (Metric("{best_set_size,top_optimism,detectable_difference}_*", group="leaderboard"),)

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """`Board`, its tables and metrics."""
        measures = jobs.answer_measures
        family = jobs.families.family
        pairs = compare_pairs(jobs.at_n, "system", jobs.seed, answers=measures, family=family)
        best = best_sets(jobs.at_n, "system", jobs.seed, answers=measures)
        frame = leaderboard(jobs.at_n, "system", jobs.n_boot, jobs.seed, best=best, answers=measures)
        frame["n_scorable"] = max(scorable_topics(record.metrics) for record in jobs.records)
        detectable = detectable_differences(jobs.at_n, pairs, answers=measures, family=family)
        return Found(
            Board(frame, pairs, best, detectable, alike(jobs.at_n, answers=measures), measures, _retrieve_alike(jobs)),
            metrics={**metrics_of.detectable(detectable), **best.metrics()},
            tables={"leaderboard": frame, **({"paired_tests": pairs} if len(pairs) else {}), "best_sets": best.table},
            logged={"leaderboard": frame},
        )

    def show(self, jobs: Jobs, value: Board, found: Founds) -> Shown:
        """Cards, the table, and the tests in a fold."""
        on_terminal = [info for info in jobs.answer_measures if info.on_terminal]
        lost = [f"not in the table, since its jobs failed: {one} ({error})" for one, error in jobs.lost.items()]
        topics, classed = (int(value.frame[name].max()) for name in ("n_topics", "n_classed"))
        below = (
            common_text(value.pairs, classed, jobs.answer_measures, int(value.frame["n_scorable"].max())),
            detectable_text(value.detectable, value.alike, jobs.answer_measures),
            families_text(jobs.families, value.pairs, jobs.answer_measures),
        )
        # Of measures that are no headline the conclusion says nothing.
        notes = [s for m in ("ir_score", "correct") if m != value.headline for s in value.alike_sentences(m)]
        names = ", ".join(jobs.lost)  # the sweep's end says why
        lines = [leaderboard_text(value.frame, jobs.n_tokens, value.judged, on_terminal)]
        lines += [f"not in the table, since its jobs failed: {names}"] if names else []
        if not jobs.families.is_usual:
            lines.append(f"paired tests: {jobs.families.in_short}")
        blocks = [
            Text(
                f"marks the systems that may be the best at N = {jobs.n_tokens} tokens, over {whole(topics)} "
                f"topics. With 95 % confidence the truly best system is among them (max-t over {jobs.units}). Where "
                "several are equally good, each of them is." + _ON_MISSING * _some_missing(value),
                tag=_MARK,
            ),
            _table(jobs, value),
            *(Text(_sentence(line), "note") for line in lost),
            *([Text(" ".join(notes), "note")] if notes else []),
            *(Text(_sentence(line), "small") for line in below if line),
            *_chance(value),
            *([_tests(jobs, value, "sample" in found)] if len(value.pairs) else []),
        ]
        return Shown([Section("Leaderboard", blocks)], lines, cards=_cards(jobs, value))


def _retrieve_alike(jobs: Jobs) -> bool:
    varied = {factor.partition(".")[0] for of in settings_of(jobs.records).values() for factor in of}
    return not varied.intersection(("chunker", "embedder", "retriever", *AROUND_RETRIEVER))


def _cards(jobs: Jobs, value: Board) -> list[Card]:
    """One card per headline: the best system, or how many tie."""
    cards = []
    for measure, most in _MOST.items():
        metric = HEADLINES[measure]
        column = metric.name
        known, missing = value.frame.dropna(subset=column), 0.0
        if column != "ir_score":
            known = known[known["judge_share_missing"] <= 1 - LEAST_JUDGED]
        if known.empty:
            continue
        against = known["judge_share_missing"] if column == "hallucination_share" else 0.0
        ranked = known[column] + against
        top = known[ranked == (ranked.max() if metric.better == "higher" else ranked.min())]
        row = top.iloc[0]
        mean = number(row, column, metric.unit)
        who = str(row["system"]) if len(top) == 1 else f"{len(top)} systems tie"
        if column != "ir_score":
            missing = top["judge_share_missing"].max()
        lacks = f"{missing:.0%} without a verdict" if missing > 0 else ""
        below = ", ".join(filter(None, (who, interval(mean) if len(top) == 1 else "", lacks)))
        cards.append(Card(f"{capitalised(most)} at N = {jobs.n_tokens}", written(mean.value, mean.kind), below))
    return cards


_ON_MISSING = (
    " A missing verdict counts against a system, as not right and as a hallucination. A system with verdicts on less "
    "than half of its answers is not compared by them."
)


def _some_missing(value: Board) -> bool:
    return value.judged and bool(value.frame["judge_share_missing"].gt(0).any())


def _table(jobs: Jobs, value: Board) -> Grid:
    rows = value.frame.to_dict("records")
    several = _ranked_by(jobs, value)
    columns: list[Col | str] = ["System"]
    if value.scored:
        columns.append(IR_SCORE.label)
    if value.judged:
        columns += [capitalised(CORRECT.label), Col(capitalised(HALLUCINATION.label), "classes 2 and 4")]
        columns += [Col(str(c), SHORT[c]) for c in (1, 2, 3, 4)]
        columns.append("No / verdict")
    rejected = "rejection_share" in value.frame
    if rejected:
        columns.append(Col(capitalised(REJECTION.label), "of the unanswerable"))
    columns += [Col(column_label(info)) for info in several]
    return Grid("Leaderboard", columns, [_row(row, value, rejected, several) for row in rows])


def _row(row: Mapping[Any, Any], value: Board, rejected: bool, several: Sequence[AnswerMeasureInfo]) -> list[str | Num]:
    cells: list[str | Num] = [str(row["system"])]
    if value.scored:
        cells.append(replace(estimate(row, "ir_score", "score", "ir_score"), note=scored(row)))
    if value.judged:
        cells += [
            estimate(row, "correct_share", "share", "correct"),
            estimate(row, "hallucination_share", "share", "hallucination"),
            *(Num(row[f"judge_share_{c}"], "share") for c in (1, 2, 3, 4, "missing")),
        ]
    if rejected:
        cells.append(estimate(row, "rejection_share", "share"))
    return cells + [measured(row, info) for info in several]


def _sentence(line: str) -> str:
    """A line of the terminal as a sentence of the page."""
    return f"{line[0].upper()}{line[1:]}."


def estimate(row: Mapping[Any, Any], column: str, kind: Any, best: str = "") -> Num:
    """The value of a column with its interval, tagged if the row's system may be the best by `best`."""
    tag = _MARK if best and row.get(f"{best}_in_best_set") is True else ""
    return number(row, column, kind, tag)


def measured(row: Mapping[Any, Any], info: AnswerMeasureInfo) -> Num:
    """An answer measure's mean of a row, as in `estimate`, with the number of topics if some lack a value."""
    mean = estimate(row, info.name, "share" if info.unit == "share" else "score", info.name)
    return replace(mean, note=valued(row, info))


def _ranked_by(jobs: Jobs, value: Board) -> list[AnswerMeasureInfo]:
    """The columns of a leaderboard without IR scores and verdicts: answer measures, or some ranking measures."""
    if value.scored or value.judged:
        return []
    return besides_rankings(jobs.answer_measures) or [i for i in jobs.answer_measures if i.compared][:_RANKED_BY]


def _chance(value: Board) -> list[Text]:
    optimism = value.best.optimism_at_top(list(HEADLINES))
    if not optimism:
        return []
    parts = ", ".join(
        f"{f'{100 * v:.1f} points' if HEADLINES[m].unit == 'share' else score(v)} of the {_MOST[m]}"
        for m, v in optimism.items()
    )
    return [
        Text(
            f"The top of {len(value.frame)} systems owes part of its lead to chance. This part is expected to be at "
            f"most {parts}.",
            "small",
        )
    ]


def _tests(jobs: Jobs, value: Board, sampled: bool) -> Fold:
    names = {info.name: info for info in jobs.answer_measures}

    def cells(pair: Mapping[Any, Any]) -> list[Cell]:
        info = names.get(str(pair["measure"]))
        points = (info is None and pair["measure"] != "ir_score") or (info is not None and info.unit == "share")
        return [
            f"{pair['a']} – {pair['b']}",
            Tagged(
                METRICS[str(pair["measure"])].difference if info is None else column_label(info) + ", points" * points,
                "" if jobs.families.is_primary(str(pair["measure"])) else "exploratory",
                "none",
            ),
            number(pair, "difference", "points" if points else "score"),
            Num(pair["p"], "p"),
            Num(pair["p_holm"], "p"),
            Num(pair["n"], "whole"),
        ]

    grid = table("Paired tests", "Pair | <Measure | Difference | p | p, Holm | Topics", value.pairs, cells)
    how = (
        "Difference of the first less the second, on the topics that both have. IR score"
        f"{' and answer measures' * bool(names)}: sign-flip permutation test; right and hallucination (classes 2 and "
        "4): McNemar's exact test"
    )
    if CLUSTER in jobs.at_n:
        how = "Difference of the first less the second; permutation test that flips the signs of whole clusters"
    powered = ", and where a sample was judged the t test of the prediction-powered difference (topics: those judged)"
    return Fold(
        f"Paired tests, all {len(value.pairs)}",
        [Text(f"{how}{powered * sampled}. {NOT_SIMULTANEOUS}.", "small"), grid],
    )
