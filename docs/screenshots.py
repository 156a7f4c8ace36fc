"""Pictures of MLflow's UI and of the report, from the latest sweep of an experiment: `make screenshots`.

Starts MLflow on the local database, opens the saved views and the report in a headless Chromium, and writes PNG files
into docs/figures. `tests` must be on the path: the browser and the server are those of the tests.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from browser import CHROMIUM, Browser
from ragauge import track
from ragauge.track import views
from servers import mlflow_server

FIGURES = Path(__file__).parent / "figures"
WIDTH, HEIGHT = 1500, 800
REPORT = 1400, 1040
# The saved view, which mode of the page, and what is there once it is drawn.
PICTURES = {
    "mlflow_charts": (views.CHARTS, "CHART", "document.querySelectorAll('.js-plotly-plot .xtick')[7]"),
    "mlflow_table": (views.CHARTS, "ARTIFACT", "/Compare:\\s*outcome/.test(document.body.innerText)"),
    "mlflow_runs": (views.JOBS, "TABLE", "document.querySelectorAll('.ag-center-cols-container .ag-row')[9]"),
}
# The assistant's panel and button, and the tools that a chart shows under a pointer, are not ours to show.
SETTINGS = {"mlflow.assistant.panelOpen_v1": "false", "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true"}
STYLE = ".modebar-container, [data-assistant-ui] { display: none !important }"
DISMISS = "document.querySelector('[aria-label=\"Hide banner\"]')?.click()"


def main() -> None:
    """Writes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", default="fictional")
    name = parser.parse_args().experiment
    uri = track.tracking_uri()
    if not uri.startswith("sqlite:"):
        sys.exit(f"error: {uri} is no local database; unset MLFLOW_TRACKING_URI")
    if CHROMIUM is None:
        sys.exit("error: no chromium on this machine (Debian: apt-get install chromium)")
    experiment = track.connect(uri).get_experiment_by_name(name)
    if experiment is None or not any(tag.endswith(views.CHARTS) for tag in experiment.tags):
        sys.exit(f"error: {uri} holds no sweep of {name!r}; make sweep makes one")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        with mlflow_server(uri, scratch / "artifacts", scratch / "server.log") as url:
            browser = Browser(scratch / "profile")
            browser.open(url, WIDTH, HEIGHT)
            for key, value in SETTINGS.items():
                browser.evaluate(f"localStorage.setItem({json.dumps(key)}, {json.dumps(value)})")
            for picture, (view, mode, drawn) in PICTURES.items():
                browser.open("about:blank", WIDTH, HEIGHT)
                browser.open(f"{url}/{views.page(experiment.experiment_id, view, mode)}", WIDTH, HEIGHT)
                style = f"Object.assign(document.createElement('style'), {{textContent: {json.dumps(STYLE)}}})"
                browser.evaluate(f"document.head.append({style})")
                browser.wait_for(drawn)
                browser.evaluate(DISMISS)
                time.sleep(2)  # charts take the room that the banner leaves
                browser.screenshot(FIGURES / f"{picture}.png")
                print(FIGURES / f"{picture}.png")
            browser.open(report_of(uri, experiment.experiment_id).as_uri(), *REPORT)
            browser.screenshot(FIGURES / "report.png")
            print(FIGURES / "report.png")
            browser.close()


def report_of(uri: str, experiment_id: str) -> Path:
    """The report of the experiment's latest sweep."""
    [run, *_] = track.connect(uri).search_runs([experiment_id], "tags.role = 'sweep'", order_by=["start_time DESC"])
    return Path(urlsplit(run.info.artifact_uri).path) / "report.html"


if __name__ == "__main__":
    main()
