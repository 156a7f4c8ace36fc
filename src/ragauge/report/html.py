"""The report of a sweep: one HTML file that needs no network, for a screen of any width and for paper."""

from __future__ import annotations

import base64
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, column_label, is_ranking
from ragauge.contract.groups import GROUPS
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.redact import redact
from ragauge.contract.version import __version__
from ragauge.contract.visible import visible
from ragauge.estimate import HEADLINE_SHARES
from ragauge.measures.documents import IGNORED, ignored_warning
from ragauge.measures.rankings import CLASSIC_NAMES
from ragauge.report import formats
from ragauge.report.contrasts import contrasts
from ragauge.report.costs import COUNTED, costs, costs_of_jobs, latencies, stage_seconds
from ragauge.report.drawing import svg
from ragauge.report.foresight import foresight_rows
from ragauge.report.hyde_fusion import published_rankings
from ragauge.report.losses import Losses, losses
from ragauge.report.robustness import robustness_rows
from ragauge.report.slices import slices
from ragauge.report.text import detectable_text, lacking_text
from ragauge.report.topics import Topic, class_name

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from matplotlib.figure import Figure

    from ragauge.diagnose.foresight import Foresight
    from ragauge.estimate import Agreement, Transfer
    from ragauge.estimate.best import BestSystems
    from ragauge.estimate.curves import Budgets
    from ragauge.estimate.robustness import Abilities
    from ragauge.estimate.slices import SliceTables
    from ragauge.estimate.summary import Estimates

_LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "mlflow", "torch", "matplotlib")
_REPEATED = (
    "judge_repeat_pairs", "judge_repeat_topics", "judge_repeat_kappa", "judge_reorder_kappa",
    *(f"judge_{name}{end}" for name in ("repeat_agreement", "reorder_agreement", "position_effect")
      for end in ("", "_lo", "_hi")),
)  # fmt: skip
_RANKED_BY = 3  # measures of rankings in a leaderboard that has nothing else
_SHORT = {1: "lack", 2: "partly wrong", 3: "incomplete", 4: "wrong", 5: "right"}
_PAIR_NAMES = {
    "ir_score": "IR score", "correct": "right, points", "hallucination": "hallucination, points",
}  # fmt: skip
_ZONES = {
    "above_k": "above k", "between": "between h and k", "below_h": "below h", "missing": "no verdict",
}  # fmt: skip


def versions() -> dict[str, str]:
    """Version by name: ragauge, Python, and the libraries that the numbers depend on."""
    found = {"ragauge": __version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class ReportContent:
    """What a report shows, computed by the sweep.

    `records` and `failed` are what its jobs left in `job.json`; `systems` names the system of each record.
    `board` and `pairs` are those of `leaderboard` and `compare_pairs` at n_tokens, `zones` that of
    `share_by_zone`, `curves` the mean IR score {system: {n_tokens: score}}. `transfers` are by what was left
    out (retriever, dataset, chunker, llm). `sampled` and `human_shares` are those of `ppi_shares` with a
    column system, None where all topics were judged, or people labelled none; `agreement` is None there, too.
    `figures` are by name: ir_score_by_n, judge_shares, sorted_scores, reliability, transfer_<group>; one that
    is not there is not shown. `answers` are the answer measures, whose columns `board` has.
    `estimates.model` is None where no row has a verdict. `group` names these jobs where the sweep has others
    that are not comparable with them, which `others` names; `notes` are sentences on what limits the numbers.
    `floors` are what unrelated text gives, as `curves`.
    `detectable` is that of `detectable_differences`.
    `best` are the sets of systems that may be the best at n_tokens, `budgets` the bands and tests over all
    budgets, None where no system has two.
    `human_pairs` is that of the function of this name, `human_refused` why labels by people did not serve.
    `ablation` and `gains` are those of ragauge.estimate.ablation, `chunk_sizes` and `pareto` of
    `chunk_sizes` and `score_against_cost` (ragauge.experiment.sweep.contrasts); the figure is `pareto`, too.
    `slices` is None where nothing is sliced, `foresight` where there is nothing to foresee, `robustness`
    where no job has a condition of RGB's abilities.
    `losses` say where evidence is lost and why topics fail.
    """

    sweep_id: str
    experiment: str
    records: Sequence[Mapping[str, Any]]
    systems: Sequence[str]
    failed: Sequence[Mapping[str, Any]]
    n_tokens: int
    board: pd.DataFrame
    pairs: pd.DataFrame
    curves: Mapping[str, Mapping[int, float]]
    estimates: Estimates
    zones: pd.DataFrame
    transfers: Mapping[str, Transfer]
    sampled: pd.DataFrame | None
    agreement: Agreement | None
    human_shares: pd.DataFrame | None
    topics: Sequence[Topic]
    figures: Mapping[str, Figure]
    answers: Sequence[AnswerMeasureInfo] = ()
    versions: Mapping[str, str] = field(default_factory=versions)
    group: str = ""
    others: Sequence[str] = ()
    notes: Sequence[str] = ()
    floors: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    detectable: pd.DataFrame | None = None
    best: BestSystems | None = None
    budgets: Budgets | None = None
    human_pairs: pd.DataFrame | None = None
    human_refused: Sequence[str] = ()
    ablation: pd.DataFrame | None = None
    gains: pd.DataFrame | None = None
    chunk_sizes: pd.DataFrame | None = None
    pareto: pd.DataFrame | None = None
    slices: SliceTables | None = None
    foresight: Foresight | None = None
    robustness: Abilities | None = None
    losses: Losses | None = None


def write_report(content: ReportContent | Sequence[ReportContent], path: Path) -> None:
    """Writes the report as one HTML file, whole or not at all; texts of the data are escaped.

    Of several contents, those of the groups of one sweep, each has its own leaderboard, figures and sections.
    """
    contents = [content] if isinstance(content, ReportContent) else list(content)
    write_page(_html(contents), path)


def write_page(text: str, path: Path) -> None:
    """Writes a page whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    # Lone surrogates, which a JSON corpus may hold, have no UTF-8.
    draft.write_bytes(text.encode("utf-8", "replace"))
    os.replace(draft, path)


def _html(contents: Sequence[ReportContent]) -> str:
    from markupsafe import Markup

    marks = [f"g{number}-" if len(contents) > 1 else "" for number in range(1, len(contents) + 1)]
    bodies = [Markup(_body(one, mark)) for one, mark in zip(contents, marks, strict=True)]
    return _template("page.html").render(c=contents[0], groups=contents, marks=marks, bodies=bodies)


def _body(content: ReportContent, mark: str) -> str:
    """The report of one group; `mark` begins its anchors."""
    board = content.board.astype(object).where(content.board.notna(), None).to_dict("records")
    known = [row for row in board if row["correct_share"] is not None]
    return _template("report.html").render(
        c=content,
        mark=mark,
        command=_command([*content.records, *content.failed]),
        judged=bool(known),
        scored=any(row["ir_score"] is not None for row in board),
        fitted=content.estimates.model is not None,
        lacking=lacking_text(content.records),
        sections=_sections(content),
        answer_sections=_answer_sections(content),
        ignored=_ignored(content, board),
        names={info.name: info for info in content.answers},
        direction=column_label,
        images={name: _data_uri(figure) for name, figure in content.figures.items()},
        level=content.estimates.thresholds.level,
        board=board,
        best_correct=max(known, key=lambda row: row["correct_share"], default=None),
        fewest=min(known, key=lambda row: row["hallucination_share"], default=None),
        n_topics=max(row["n_topics"] for row in board),
        pairs=content.pairs.to_dict("records"),
        **_budget_rows(content.budgets),
        **contrasts(content.ablation, content.gains, content.chunk_sizes, content.pareto, content.answers),
        **robustness_rows(content.robustness),
        **slices(content.slices, content.board["system"].tolist(), content.answers),
        **foresight_rows(content.foresight),
        **losses(content.losses, content.board["system"].tolist()),
        components=_components(content.records),
        datasets=list(dict.fromkeys(r["dataset_digest"] for r in content.records)),
        budgets=sorted({int(r["n_tokens"]) for r in content.records}),
        curve_grid=sorted({n for curve in content.curves.values() for n in curve}),
        jobs=_metrics_by_system(content),
        rankings=_rankings(content),
        ranked_by=_ranked_by(content, board),
        published=published_rankings(content.records),
        zones=content.zones.to_dict("records"),
        measures=content.estimates.validation.estimates,
        sampled=_share_rows(content.sampled),
        human_shares=_share_rows(content.human_shares),
        human_pairs=[] if content.human_pairs is None else content.human_pairs.to_dict("records"),
        predicted=any("predicted_correct_share" in r["metrics"] for r in content.records),
        outside_share=max(r["metrics"].get("predicted_outside_share", 0) for r in content.records),
        costs=costs(content.records),
        costs_of_jobs=costs_of_jobs(content.systems, content.records),
        stage_seconds=stage_seconds(content.records),
        latencies=latencies(content.systems, content.records),
        stability=_stability(content),
        detectable=detectable_text(content.detectable, content.answers),
        total_seconds=sum(r["metrics"]["seconds_total"] for r in content.records),
    )


def _sections(content: ReportContent) -> dict[str, str]:
    """{anchor: heading} of the sections in order. A section without numbers says so and is not left out."""
    return {
        "run": "What was run",
        "leaderboard": "Leaderboard",
        "ir-score": "IR score against N",
        "budgets": "Budgets",
        "ablation": "What each part brings",
        "funnel": "Where evidence is lost",
        "rankings": "Measures of the rankings",
        "classes": "Judge classes by system",
        **{anchor: found[0].section for anchor, found in _answer_sections(content).items()},
        **({"robustness": "Robustness"} if content.robustness is not None else {}),
        "failures": "Why topics fail",
        "slices": "Slices of the topics",
        "thresholds": "Sorted scores and thresholds",
        "zones": "Zones with a guarantee",
        "predictor": "Reliability of the predictor",
        "transfer": "Transfer to what the predictor has not seen",
        "foresight": "Which measure foresees the answers",
        "pareto": "Score against cost",
        "cost": "Cost",
        "topics": f"{len(content.topics) or 'The'} topics worth reading",
    }


def _budget_rows(found: Budgets | None) -> dict[str, list[dict[Any, Any]]]:
    """The rows of the tables of the section on budgets."""
    if found is None:
        return {"smallest_budgets": [], "budget_tests": [], "budget_bands": []}
    smallest = found.smallest.astype(object).where(found.smallest.notna(), None)
    return {
        "smallest_budgets": smallest.to_dict("records"),
        "budget_tests": found.most_different().to_dict("records"),
        "budget_bands": found.bands.to_dict("records"),
    }


def _answer_sections(content: ReportContent) -> dict[str, list[AnswerMeasureInfo]]:
    """The answer measures by the anchor of the section that they stand in."""
    by_section: dict[str, list[AnswerMeasureInfo]] = {}
    for info in besides_rankings(content.answers):
        by_section.setdefault(info.section, []).append(info)
    return {f"answers-{number}": found for number, found in enumerate(by_section.values(), 1)}


def _ignored(content: ReportContent, board: Sequence[Mapping[Any, Any]]) -> list[str]:
    """A sentence for every system whose answers leave too much of what is ranked first aside."""
    if not any(info.name == IGNORED for info in content.answers):
        return []
    known = [(row["system"], row[IGNORED]) for row in board if row[IGNORED] is not None]
    return [told for system, share in known if (told := ignored_warning(share, system))]


def _rankings(content: ReportContent) -> dict[str, str]:
    """{metric: name} of the measures of rankings that some job has, in the order of the config."""
    records = content.records
    names = {info.name: info.label for info in content.answers if is_ranking(info)}
    for record in records:  # of jobs of before, which have means alone
        names = {**record.get("rankings", CLASSIC_NAMES), **names}
    return {metric: name for metric, name in names.items() if any(metric in r["metrics"] for r in records)}


def _ranked_by(content: ReportContent, board: Sequence[Mapping[Any, Any]]) -> list[AnswerMeasureInfo]:
    """The columns of a leaderboard without IR scores and verdicts: answer measures, or some of rankings."""
    if any(row["ir_score"] is not None or row["correct_share"] is not None for row in board):
        return []
    return besides_rankings(content.answers) or list(content.answers[:_RANKED_BY])


def _metrics_by_system(content: ReportContent) -> dict[str, dict[int, Mapping[str, Any]]]:
    """The metrics of the jobs: {system: {n_tokens: metrics}}."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for system, record in zip(content.systems, content.records, strict=True):
        found.setdefault(system, {})[int(record["n_tokens"])] = record["metrics"]
    return found


def _components(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The options that were chosen of every config group."""
    known = dict.fromkeys(group for record in records for group in record["choices"])
    groups = [*(g for g in GROUPS if g in known), *(g for g in known if g not in GROUPS)]
    chosen = {group: list(dict.fromkeys(str(record["choices"].get(group)) for record in records)) for group in groups}
    return {group: options for group, options in chosen.items() if options != ["None"]}


def _command(records: Sequence[Mapping[str, Any]]) -> str:
    """The command that asks for the jobs: every override with all of its values in these jobs."""
    values: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: record["number"]):
        for override in record["overrides"]:
            key, _, value = override.partition("=")
            seen = values.setdefault(key, [])
            if value not in seen:
                seen.append(value)
    overrides = [f"{key}={','.join(seen)}" if seen != [""] else key for key, seen in values.items()]
    many = ["-m"] if len(records) > 1 else []
    return redact(shlex.join(["python", "run.py", *many, *overrides]))


def _share_rows(shares: pd.DataFrame | None) -> list[dict[Any, Any]]:
    """The rows of the two headline shares of every system."""
    if shares is None:
        return []
    headlines = shares[shares["share"].isin(HEADLINE_SHARES)]
    return headlines.to_dict("records")


def _stability(content: ReportContent) -> list[dict[str, Any]]:
    """How stable the judge's labels are: {systems, metric: value}, a row for jobs that share the values."""
    rows: dict[tuple[float | None, ...], dict[str, Any]] = {}
    for system, record in zip(content.systems, content.records, strict=True):
        found = {name: record["metrics"].get(name) for name in _REPEATED}
        if found["judge_repeat_pairs"] is not None:
            row = rows.setdefault(tuple(found.values()), {**found, "systems": []})
            row["systems"].append(f"{system}, N = {record['n_tokens']}")
    return list(rows.values())


def _data_uri(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure)).decode()


def _template(name: str) -> Template:
    return _environment().get_template(name)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=PackageLoader("ragauge.report", "template"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals |= {
        "score": formats.score,
        "share": formats.share,
        "points": formats.points,
        "p_value": formats.p_value,
        "whole": formats.whole,
        "usd": formats.usd,
        "seconds": formats.seconds,
        "milliseconds": formats.milliseconds,
        "signed": formats.signed,
        "class_name": class_name,
        "calls": COUNTED,
        "short": _SHORT,
        "zone_names": _ZONES,
        "pair_names": _PAIR_NAMES,
    }
    return environment


def _shown(value: object) -> object:
    """What a template prints, with control characters as symbols; a text that is markup stays it."""
    return type(value)(visible(value)) if isinstance(value, str) else value
