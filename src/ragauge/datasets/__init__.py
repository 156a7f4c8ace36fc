"""Config group `dataset`: files to documents, topics and evidence (formats: docs/datasets.md)."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.datasets._beir import Beir
    from ragauge.datasets._csv import CsvDataset
    from ragauge.datasets._documents_alone import DocumentsAlone, documents_of
    from ragauge.datasets._folder import Folder
    from ragauge.datasets._gather import BadRow, FileSource, Gatherer, existing_file
    from ragauge.datasets._jsonl import JsonlDataset, SampleDataset
    from ragauge.datasets._questions import questions_of
    from ragauge.datasets._recorded import RecordedOutcomes, StudyOutcomes
    from ragauge.datasets._rows import Rows, stream_documents
    from ragauge.datasets._samples import SamplesDataset
    from ragauge.datasets._split import SplitDataset, TopicsLeftOut
    from ragauge.datasets._trec import Trec

__all__ = [
    "BadRow",
    "Beir",
    "CsvDataset",
    "DocumentsAlone",
    "FileSource",
    "Folder",
    "Gatherer",
    "JsonlDataset",
    "RecordedOutcomes",
    "Rows",
    "SampleDataset",
    "SamplesDataset",
    "SplitDataset",
    "StudyOutcomes",
    "TopicsLeftOut",
    "Trec",
    "documents_of",
    "existing_file",
    "questions_of",
    "stream_documents",
]

__getattr__ = lazily(__name__)
