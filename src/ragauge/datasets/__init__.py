"""Config group `dataset`: files to documents, topics and evidence (formats: docs/datasets.md)."""

from ragauge.datasets._beir import Beir
from ragauge.datasets._csv import CsvDataset
from ragauge.datasets._folder import Folder
from ragauge.datasets._gather import BadRow, FileSource, Gatherer, existing_file
from ragauge.datasets._hotpotqa import HotpotQA
from ragauge.datasets._huggingface import HuggingFace
from ragauge.datasets._ir_datasets import IrDatasets
from ragauge.datasets._jsonl import JsonlDataset, SampleDataset
from ragauge.datasets._recorded import RecordedOutcomes, StudyOutcomes
from ragauge.datasets._rows import Rows, stream_documents
from ragauge.datasets._trec import Trec

__all__ = [
    "BadRow",
    "Beir",
    "CsvDataset",
    "FileSource",
    "Folder",
    "Gatherer",
    "HotpotQA",
    "HuggingFace",
    "IrDatasets",
    "JsonlDataset",
    "RecordedOutcomes",
    "Rows",
    "SampleDataset",
    "StudyOutcomes",
    "Trec",
    "existing_file",
    "stream_documents",
]
