"""An experiment's saved views in MLflow's UI, and a description with links.

MLflow keeps a saved view as one tag of the experiment and opens it by its key in the address
(`viewStateShareKey`). The state's keys are those of MLflow's own UI; one that a version does not know shows
its default view.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragauge.contract.metrics import IR_SCORE, in_group
from ragauge.track.connection import absolute_uri, tracking_uri

OWN = "ragauge-"  # how the keys of ragauge's views begin
JOBS, CHARTS = f"{OWN}jobs", f"{OWN}charts"
_COLUMNS = [
    *(f"metrics.`{name}`" for name in (
        "ir_score", "correct_share", "hallucination_share", "judge_share_1", "judge_share_missing",
        "predicted_correct_share", "threshold_h", "threshold_k", "predictor_auc_correct", "cost_usd",
    )),
    *(f"tags.`{name}`" for name in ("judge", "chunker", "measure", "sweep_id")),
]  # fmt: skip
TOKENS = "tokens"  # the step chart {N: N}, the x-axis of the others: MLflow calls their own one "Step"
BARS = ("ir_score", "correct_share", "hallucination_share", "judge_share_1", "judge_share_3")


@dataclass(frozen=True)
class View:
    """A saved view: its key in addresses, its name in MLflow's menu of views, and its state."""

    key: str
    name: str
    state: dict[str, Any]

    def encoded(self, created_ms: int) -> str:
        """The compressed value of its tag, since older servers allow 5,000 characters."""
        packed = base64.b64encode(zlib.compress(json.dumps(self.state).encode(), 9)).decode()
        envelope = {"name": self.name, "createdAt": created_ms, "state": f"deflate;{packed}"}
        return json.dumps(envelope, ensure_ascii=False)


def jobs_view() -> View:
    """All jobs, the columns that matter first."""
    return View(JOBS, "ragauge: jobs", _table("tags.role = 'job'"))


def charts_view(sweep_id: str, n_tokens: int, group: str = "", number: int = 1, bars: Collection[str] = BARS) -> View:
    """The jobs of a sweep at one budget, the best first: IR score against N, and the judge's shares.

    In a sweep with several groups of comparable jobs, those that carry the tag `group`; `number` counts them from 1,
    and the first stands at CHARTS. `bars` are the metrics of BARS that have a chart.
    """
    section = "ragauge-section"
    search = f"tags.role = 'job' and tags.sweep_id = '{sweep_id}' and tags.n_tokens = '{n_tokens}'"
    search += f" and tags.group = '{group}'" if group else ""
    of_group = f", {group}" if group else ""
    state = {
        **_table(search),
        "orderByKey": "metrics.`ir_score`",
        "compareRunCharts": [
            _line("ir_score_at_n", section),
            *(_bar(metric, section) for metric in BARS if metric in bars),
        ],
        "compareRunSections": [
            {
                "uuid": section,
                "name": f"Latest sweep{of_group}, N = {n_tokens}",
                "display": True,
                "isReordered": True,
                "deleted": False,
                "isGenerated": False,
            }
        ],
        "isAccordionReordered": True,
    }
    return View(charts_key(number), f"ragauge: latest sweep{of_group}", state)


def charts_key(number: int) -> str:
    """The key of the charts of a sweep's group, numbered from 1."""
    return CHARTS if number == 1 else f"{CHARTS}-{number}"


def page(experiment_id: str, key: str, mode: str = "TABLE") -> str:
    """The address of a view within MLflow's UI; `mode` is TABLE, CHART or ARTIFACT (tables side by side)."""
    return f"#/experiments/{experiment_id}/runs?compareRunsMode={mode}&viewStateShareKey={key}"


def sweep_page(experiment_id: str, sweep_id: str, group: str = "") -> str:
    """The address of the runs of a sweep, or of one of its groups, within MLflow's UI."""
    search = f"tags.sweep_id = '{sweep_id}'" + (f" and tags.group = '{group}'" if group else "")
    return f"#/experiments/{experiment_id}/runs?searchFilter=" + quote(search)


def run_page(experiment_id: str, run_id: str) -> str:
    """The address of a run within MLflow's UI."""
    return f"#/experiments/{experiment_id}/runs/{run_id}"


def description(experiment_id: str, sweep_runs: Mapping[str, str] | None = None) -> str:
    """Markdown for the head of the experiment's page.

    `sweep_runs` are the runs of the latest sweep, if any: {group: run id}, with "" for its only group.
    """
    lines = [f"**Look at** [the jobs]({page(experiment_id, JOBS)}): scores, judge classes, thresholds, cost"]
    if sweep_runs:
        links = []
        for number, (group, run_id) in enumerate(sweep_runs.items(), 1):
            key, report = (charts_key(number), f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/report.html")
            of_sweep = f"of {_plain(group)}" if number > 1 else "of the latest sweep"
            of_sweep += f", {_plain(group)}" if group and number == 1 else ""
            links.append(
                f"[{IR_SCORE.label} against N]({page(experiment_id, key, 'CHART')}) {of_sweep}"
                f" · [its answers side by side]({page(experiment_id, key, 'ARTIFACT')})"
                f" · [its report]({report})"
            )
        all_jobs = f"[all jobs]({page(experiment_id, JOBS)})"
        lines[0] = f"**Look first at** {' · '.join([*links, all_jobs])}"
    lines += [
        "",
        "A job is one retriever, budget and model; `role=sweep` is what is pooled over a sweep's jobs.",
        "",
        "- `ir_score`: share of the needed evidence that stands in the first N tokens, 0 to 1",
        "- `correct_share`, `hallucination_share`, `judge_share_1` (lack of information), `judge_share_missing` (no "
        "verdict): shares of topics",
        "- `threshold_h`, `threshold_k`: IR scores below which information lacks, above which answers are right",
        "- `per_question.json` of a job: every question with truth, answer, verdict and context",
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text without the characters that Markdown would take for a link, emphasis or HTML."""
    return re.sub(r"[][<>*_`\\|]+", " ", text)


def _table(search: str) -> dict[str, Any]:
    return {
        "searchFilter": search,
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": _COLUMNS,
        "columnOrder": _COLUMNS,
        "runsHiddenMode": "FIRST_20_RUNS",
    }


def _bar(metric: str, section: str) -> dict[str, Any]:
    return {
        "type": "BAR",
        "uuid": f"ragauge-{metric}",
        "metricSectionId": section,
        "metricKey": in_group(metric),
        "runsCountToCompare": 20,
        "deleted": False,
        "isGenerated": False,
    }


def _line(metric: str, section: str) -> dict[str, Any]:
    return {
        **_bar(metric, section),
        "type": "LINE",
        "xAxisKey": "metric",
        "useGlobalXaxisKey": False,
        "useGlobalLineSmoothing": False,
        "lineSmoothness": 0,
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "range": {},
        "selectedXAxisMetricKey": in_group(TOKENS),
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "ignoreOutliers": False,
    }


def where_text(uri: str, page: str) -> str:
    """How to open a page of MLflow's UI: the server's address, or the command to start one."""
    if uri.startswith(("http://", "https://")):
        return f"MLflow UI: {uri.rstrip('/')}/{page}"
    here = absolute_uri(uri) == absolute_uri(tracking_uri())
    make = Path("Makefile")
    by_make = "make ui, or " if make.is_file() and "\nui:" in make.read_text(encoding="utf-8", errors="replace") else ""
    start = f"{by_make}ragauge ui" if here else f"ragauge ui --tracking-uri {shlex.quote(uri)}"
    return f"MLflow UI: {start}; then http://127.0.0.1:5000/{page}"
