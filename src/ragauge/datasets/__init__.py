"""Config group `dataset`: reads documents, topics and evidence from files (formats: docs/datasets.md)."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.datasets._csv import CsvDataset
    from ragauge.datasets._samples import SamplesDataset
    from ragauge.datasets.fields import BadRow
    from ragauge.datasets.files import existing_file
    from ragauge.datasets.gather import FileSource, Gatherer, Rows, stream_documents
    from ragauge.datasets.jsonl import JsonlDataset, SampleDataset

__all__ = [
    "BadRow",
    "CsvDataset",
    "FileSource",
    "Gatherer",
    "JsonlDataset",
    "Rows",
    "SampleDataset",
    "SamplesDataset",
    "existing_file",
    "stream_documents",
]

__getattr__ = lazily(__name__)
