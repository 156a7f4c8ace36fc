"""Links the evaluation dataset that a job measured to its runs in MLflow."""

from __future__ import annotations

import json

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.plugins.mlflow_pages.dataset import MlflowDataset, dataset_named, evaluation_datasets
from ragauge.track import absolute_uri, tracking_uri


class Linked(JobFinding):
    """Links an MLflow dataset to the job's run; the job's evaluation run has the same datasets."""

    name = "mlflow_dataset"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Logs the evaluation dataset as a further dataset of the run; returns its id."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        source = job.pipeline.components.dataset
        uri = absolute_uri(tracking_uri(job.settings.tracking.uri))
        if not isinstance(source, MlflowDataset) or absolute_uri(tracking_uri(source.uri)) != uri:
            return None
        with evaluation_datasets(uri, source.name) as client:
            known = dataset_named(client, source.name)
            place = json.dumps({"dataset_id": known.dataset_id})
            entity = Dataset(known.name, known.digest, "mlflow_evaluation_dataset", place, known.schema, known.profile)
            client.log_inputs(
                job.record.run_id, [DatasetInput(entity, [InputTag("mlflow.data.context", "evaluation")])]
            )
        return Found(known.dataset_id)
