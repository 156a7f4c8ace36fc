"""Config group `dataset`: files to documents, topics and evidence (formats: docs/datasets.md)."""

from ragauge.datasets._beir import Beir
from ragauge.datasets._csv import CsvDataset
from ragauge.datasets._gather import BadRow, FileSource, Gatherer, existing_file
from ragauge.datasets._hotpotqa import HotpotQA
from ragauge.datasets._huggingface import HuggingFace
from ragauge.datasets._ir_datasets import IrDatasets
from ragauge.datasets._jsonl import JsonlDataset, SampleDataset
from ragauge.datasets._recorded import RecordedOutcomes, StudyOutcomes
from ragauge.datasets._trec import Trec

__all__ = [
    "BadRow",
    "Beir",
    "CsvDataset",
    "FileSource",
    "Gatherer",
    "HotpotQA",
    "HuggingFace",
    "IrDatasets",
    "JsonlDataset",
    "RecordedOutcomes",
    "SampleDataset",
    "StudyOutcomes",
    "Trec",
    "existing_file",
]
