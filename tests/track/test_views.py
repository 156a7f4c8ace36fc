"""Saved views: what stands in their tags, and what MLflow's own UI makes of them."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pandas as pd
import pytest

from browser import CHROMIUM, Browser
from ragauge.track import Tracker, views
from servers import mlflow_server


def test_a_view_s_tag_holds_its_name_and_its_state_packed() -> None:
    view = views.charts_view("2026_a", 300)
    envelope = json.loads(view.encoded(1_000))
    assert (envelope["name"], envelope["createdAt"]) == ("ragauge: latest sweep", 1_000)
    head, _, packed = envelope["state"].partition(";")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert (head, state) == ("deflate", view.state)
    assert state["searchFilter"] == ("tags.role = 'job' and tags.sweep_id = '2026_a' and tags.n_tokens = '300'")
    assert state["compareRunCharts"][0]["metricKey"] == "chart/ir_score_at_n"
    # Older servers take 5,000 characters.
    assert len(view.encoded(10**13)) < 5000


def test_a_metric_without_values_has_no_chart() -> None:
    charts = views.charts_view("s", 300, bars=["ir_score", "judge_share_1"]).state["compareRunCharts"]
    assert [chart["metricKey"] for chart in charts[1:]] == ["ir_score", "judge_share_1"]


def test_pages_stand_at_mlflow_s_addresses() -> None:
    assert views.page("7", views.CHARTS, "CHART") == (
        "#/experiments/7/runs?compareRunsMode=CHART&viewStateShareKey=ragauge-charts"
    )
    assert views.sweep_page("7", "a b") == ("#/experiments/7/runs?searchFilter=tags.sweep_id%20%3D%20%27a%20b%27")


def test_the_description_links_the_latest_sweep_where_there_is_one() -> None:
    first, rest = views.description("7", {"": "f00"}).split("\n", 1)
    # All links stand in the first line, which is what MLflow shows of a long description.
    assert first.count("](#/experiments/7/runs") == 4
    assert "#/experiments/7/runs/f00/artifacts/report.html" in first
    assert "](" not in rest
    alone = views.description("7")
    assert views.JOBS in alone
    assert views.CHARTS not in alone


def test_the_only_group_of_a_sweep_has_its_name_beside_it() -> None:
    for group, said in (("", " of the latest sweep · "), ("judge=a", " of the latest sweep, judge=a · ")):
        assert f"{said}[its answers side by side]" in views.description("7", {group: "f00"})


def test_every_group_of_the_latest_sweep_has_charts_of_its_own() -> None:
    first, second = (views.charts_view("s", 300, f"judge={j}", n) for n, j in ((1, "a"), (2, "b")))
    assert (first.key, second.key) == (views.CHARTS, f"{views.CHARTS}-2")
    assert second.name == "ragauge: latest sweep, judge=b"
    assert second.state["searchFilter"].endswith("tags.n_tokens = '300' and tags.group = 'judge=b'")
    line = views.description("7", {"judge=a": "f00", "judge=[b](x)": "f01"}).split("\n", 1)[0]
    assert line.count("](#/experiments/7/runs") == 7
    for wanted in ("latest sweep, judge=a ", "of judge= b (x)", "f00/artifacts", "f01/artifacts", second.key):
        assert wanted in line


@pytest.mark.slow
def test_mlflow_s_ui_opens_the_views(tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    backend = f"sqlite:///{tmp_path / 'mlflow.db'}"
    with mlflow_server(backend, tmp_path / "artifacts", tmp_path / "server.log") as url:
        tracker = Tracker(url, "towers")
        for retriever, score in (("bm25", 0.5), ("sim", 0.75)):
            tags = {"role": "job", "sweep_id": "s1", "n_tokens": "300"}
            with tracker.run(f"{retriever} · N=300 · extractive", {}, tags) as run:
                curves = {"ir_score_at_n": {100: score / 2, 300: score}, views.TOKENS: {100: 100, 300: 300}}
                run.metrics({"ir_score": score}, curves)
                table = pd.DataFrame({"query": ["How tall?"], "outcome": [f"right by {retriever}"]})
                run.table(table, "per_question.json")
        tracker.present(
            [views.jobs_view(), views.charts_view("s1", 300)],
            views.description(run.experiment_id, {"": "f00"}),
        )
        browser = Browser(tmp_path / "profile")
        shown = "document.body.innerText.includes({!r})"

        browser.open(f"{url}/{views.page(run.experiment_id, views.CHARTS, 'CHART')}", 1500)
        for text in ("ragauge: latest sweep", "Latest sweep, N = 300", "Look first at", "sim · N=300"):
            browser.wait_for(shown.format(text))
        # A line for either run, and a bar for either.
        browser.wait_for("document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length >= 2")
        browser.wait_for("document.querySelectorAll('.js-plotly-plot .barlayer .point').length === 2")

        browser.open("about:blank", 1500)
        browser.open(f"{url}/{views.page(run.experiment_id, views.CHARTS, 'ARTIFACT')}", 1500)
        for text in ("right by bm25", "right by sim"):
            browser.wait_for(shown.format(text))

        browser.open("about:blank", 1500)
        browser.open(f"{url}/{views.page(run.experiment_id, views.JOBS)}", 1500)
        browser.wait_for(shown.format("ragauge: jobs"))
        headers = "[...document.querySelectorAll('.ag-header-viewport .ag-header-cell')]"
        # By place on the screen: a column that came late stands last in the document.
        by_place = "(a, b) => a.getBoundingClientRect().left - b.getBoundingClientRect().left"
        browser.wait_for(f"{headers}.sort({by_place})[0]?.innerText.trim() === 'ir_score'")
        browser.close()
