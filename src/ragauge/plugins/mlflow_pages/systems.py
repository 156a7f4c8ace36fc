"""`tracking.models=true`: every system is a model of MLflow, which holds its metrics of all budgets and sweeps."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragauge.contract.comparable import digests
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import in_group
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact_config
from ragauge.findings.cost import per_topic
from ragauge.plugins.mlflow_pages.prompts import LINKED, Version, as_tag, linked_prompts
from ragauge.plugins.mlflow_pages.topics import evaluation_metrics
from ragauge.store import canonical_json
from ragauge.track import absolute_uri, flatten, local_database, param_text, tracking_uri
from ragauge.track.connection import at, pages, quiet, reachable

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_TAG = "ragauge.system"  # on a model: the digest of the system
_PREDICTOR = "ragauge.predictor"  # the model id of the predictor that was fitted last on its topics
_WRITES = 0.2  # seconds after which a server shows what another job wrote before
_UNTOLD = ("component", "version", "digest", "sha256", "code")  # of an identity: no setting of the user


class Systems(JobFinding):
    """A model of MLflow for the job's system, with its prompts and metrics.

    A system is the job's components, but for the dataset: neither its budget nor its seed tells it from another.
    """

    name = "mlflow_systems"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Writes into MLflow and the job's record; the value is the id of the model."""
        if not job.settings.tracking.models:
            return None
        of, record = job.pipeline.components, job.record
        uri = absolute_uri(tracking_uri(job.settings.tracking.uri))
        with quiet(), at(uri) as client, reachable(uri):
            run = client.get_run(record.run_id)
            prompts = linked_prompts(client, job.settings, of, run.info.experiment_id)
            parts = {group: getattr(of, group) for group in GROUPS if group != "dataset"}
            parts |= {f"{ANSWERS}.{name}": measure for name, measure in of.answers.items()}
            identities = {name: job.pipeline.identity_of(part) for name, part in parts.items()}
            params = _params(identities, record.choices, prompts)
            lock = job.pipeline.store.root / "systems.lock"
            model_id = model_of(client, run, _name(record), digest_of(identities), params, lock)
            values = evaluation_metrics(found["estimates"].metrics, job.outcomes, job.answer_measures)
            values |= per_topic(job.pipeline)
            log_metrics(client, run, model_id, values, job.n_tokens)
            _link(client, run, model_id, prompts)
        return Found(model_id, record={"model": model_id})


def digest_of(identities: Mapping[str, Mapping[str, Any]]) -> str:
    """The digest of a system, from the identities of its components by name."""
    return hashlib.sha256(canonical_json(digests(identities)).encode()).hexdigest()


def model_of(client: MlflowClient, run: Run, name: str, digest: str, params: Mapping[str, str], lock: Path) -> str:
    """The id of the system's model in the run's experiment, created if there is none.

    Jobs with one store wait for one another at the file `lock`. Of several models that others made at the same time the
    oldest counts, and a job that made another one deletes that.
    """
    query = f"tags.`{_TAG}` = '{digest}'"
    search = partial(client.search_logged_models, [run.info.experiment_id], query)
    made = None
    with FileLock(lock):
        if not list(pages(search)):
            given = (run.info.experiment_id, name, run.info.run_id, {_TAG: digest}, dict(params), "system")
            made = client.create_logged_model(*given).model_id
            client.finalize_logged_model(made, "READY")
            if local_database(client.tracking_uri) is None:
                time.sleep(_WRITES)
        oldest = min(pages(search), key=lambda one: (one.creation_timestamp, one.model_id)).model_id
    if made is not None and made != oldest:
        client.delete_logged_model(made)
    return str(oldest)


def log_metrics(client: MlflowClient, run: Run, model_id: str, values: Mapping[str, float], n_tokens: int) -> None:
    """Logs values on the model through its run, with the run's dataset at the budget.

    MLflow's page shows one value of a metric for a model and dataset: without the budget in the dataset's name it would
    be that of any budget.
    """
    from mlflow.entities import Metric

    inputs = run.inputs.dataset_inputs if run.inputs is not None else []
    own = [one.dataset for one in inputs if one.dataset.source_type == "ragauge"]
    dataset = {}
    if own:
        of = own[0]
        dataset = {"dataset_name": f"{of.name}, N={n_tokens}", "dataset_digest": of.digest}
    now = int(time.time() * 1000)
    metrics = [
        Metric(in_group(name), float(value), now, 0, model_id, run_id=run.info.run_id, **dataset)
        for name, value in values.items()
        if value == value
    ]
    client.log_batch(run.info.run_id, metrics=metrics)


def _link(client: MlflowClient, run: Run, model_id: str, prompts: Mapping[str, Version]) -> None:
    """Sets the tags that link run and model with the prompts, and the model with the run's predictor."""
    tags = {LINKED: as_tag(prompts)} if prompts else {}
    if tags:
        client.set_tag(run.info.run_id, LINKED, tags[LINKED])
    if run.outputs is not None and run.outputs.model_outputs:
        tags[_PREDICTOR] = run.outputs.model_outputs[-1].model_id
    if tags:
        client.set_logged_model_tags(model_id, tags)


def _name(record: JobRecord) -> str:
    """The job's name without its budget, in characters allowed in a model's name."""
    parts = [part for part in record.name.split(" · ") if not part.startswith("N=")]
    return re.sub(r"[/:.%\"']", "-", " · ".join(parts))


def _params(
    identities: Mapping[str, Mapping[str, Any]], choices: Mapping[str, str], prompts: Mapping[str, Version]
) -> dict[str, str]:
    """A system's settings as MLflow's params: the option of each config group and everything that affects its output.

    A prompt is its URI.
    """
    settings = {
        key: {name: value for name, value in found.items() if name not in _UNTOLD and not name.startswith("prompt")}
        for key, found in identities.items()
    }
    uris = {key: f"prompts:/{name}/{version}" for key, (name, version) in prompts.items()}
    chosen = {group: option for group, option in choices.items() if group in identities}
    flat = flatten(settings) | chosen | uris
    return {key: param_text(value) for key, value in redact_config(flat).items()}
