"""Config group `dataset`: files to documents, topics and evidence (formats: docs/datasets.md)."""

from ragauge.datasets._csv import CsvDataset
from ragauge.datasets._gather import BadRow, FileSource, Gatherer, existing_file
from ragauge.datasets._hotpotqa import HotpotQA
from ragauge.datasets._jsonl import JsonlDataset, SampleDataset
from ragauge.datasets._recorded import RecordedOutcomes, StudyOutcomes
from ragauge.datasets._samples import SamplesDataset

__all__ = [
    "BadRow",
    "CsvDataset",
    "FileSource",
    "Gatherer",
    "HotpotQA",
    "JsonlDataset",
    "RecordedOutcomes",
    "SampleDataset",
    "SamplesDataset",
    "StudyOutcomes",
    "existing_file",
]
