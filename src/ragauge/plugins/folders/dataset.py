"""A folder of text, Markdown, HTML, PDF and Word files as documents, and a file of questions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from ragauge.contract.checks import require, require_flag, require_number
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.loading import build
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow
from ragauge.datasets.files import existing_file, existing_folder, is_encoding
from ragauge.datasets.gather import FileSource, Gatherer
from ragauge.datasets.jsonl import add_topics
from ragauge.plugins.folders.documents import READERS, Reader, Section, by_llama_index, require_small_archive

log = logging.getLogger(__name__)


@option("dataset/folder")
class Folder(FileSource):
    """The files of the folder `path` as documents, and the questions of the JSON Lines file `topics`.

    sections: a page of a PDF, and what stands under a heading of Markdown, HTML or Word, is a document of
        its own; else every file is one. readers: {suffix: {_target_: a reader of LlamaIndex, …}} for further
        kinds of file, or in place of the own ones. max_megabytes: a file that is larger, packed or
        unpacked, is a bad row.
    """

    component = "folder"
    version = 3

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    topics: str | Path | None = runtime(CONF)
    sections: bool = CONF
    encoding: str = CONF
    max_megabytes: float = 100.0
    readers: Mapping[str, Mapping[str, Any]] | None = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag("dataset.sections", self.sections)
        require_number("dataset.max_megabytes", self.max_megabytes, 0, above=True)
        of_suffix = self.readers is None or (
            isinstance(self.readers, Mapping)
            and all(isinstance(spec, Mapping) and "_target_" in spec for spec in self.readers.values())
        )
        require("dataset.readers", self.readers, of_suffix, "null and mappings such as {pptx: {_target_: …}}")
        require("dataset.encoding", self.encoding, is_encoding(self.encoding), "encodings that Python knows")

    def files(self) -> Mapping[str, Path]:
        """Every document file by its path in the folder, and `topics`; ConfigError if there is none."""
        if self.topics is None:
            raise ConfigError(
                "dataset.topics is not set: a folder holds documents alone; give a file of questions (JSON "
                "Lines, as of dataset=jsonl), or have some written: ragauge synthesize"
            )
        return {**self.document_files(), "topics": existing_file("topics", self.topics)}

    def document_files(self) -> Mapping[str, Path]:
        """Every document file by its path in the folder; ConfigError if there is none."""
        found = {f"docs/{file.relative_to(folder).as_posix()}": file for folder, file in self._there()}
        if not found:
            known = ", ".join(self._readers())
            raise ConfigError(f"dataset.path={self.path}: the folder holds no file of {known}")
        return found

    def load(self) -> Dataset:
        """The collection; DataError names the file, or line and qid of the questions, and the error."""
        topics = self.files()["topics"]
        gather = Gatherer(self)
        self._add_documents(gather)
        gather.end_of_documents(str(self.path))
        add_topics(gather, topics)
        return gather.dataset(str(self.path), topics)

    def documents(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs` without a file of topics, and the dropped files."""
        self.document_files()
        gather = Gatherer(self)
        self._add_documents(gather)
        return gather.documents(str(self.path))

    def _add_documents(self, gather: Gatherer) -> None:
        readers = self._readers()
        for folder, file in self._there():
            with gather.row(str(file)):
                path = file.relative_to(folder).as_posix()
                for docno, title, text in self._documents(folder, file, path, readers[file.suffix.lower()]):
                    gather.add_document(docno, title, text)

    def _readers(self) -> dict[str, Reader]:
        own = {f".{suffix.lower().lstrip('.')}": spec for suffix, spec in (self.readers or {}).items()}
        return {
            **READERS,
            **{
                suffix: by_llama_index(build(f"dataset.readers.{suffix.lstrip('.')}", spec, {}))
                for suffix, spec in own.items()
            },
        }

    def _there(self) -> Iterator[tuple[Path, Path]]:
        """The folder with its files to read, in path order."""
        folder = existing_folder("path", self.path)
        known = self._readers()
        others = []
        for file in sorted(folder.rglob("*")):
            parts = file.relative_to(folder).parts
            if any(part.startswith(".") for part in parts) or not file.is_file():
                continue
            # A link to a file of the folder would be that file twice.
            inside = file.resolve().is_relative_to(folder.resolve())
            if file.suffix.lower() not in known:
                others.append(file)
            elif not (file.is_symlink() and inside):
                yield folder, file
        if others:
            log.info("%s: %d files of other kinds were not read, such as %s", folder, len(others), others[0])

    def _documents(self, folder: Path, file: Path, path: str, read: Reader) -> list[tuple[str, str, str]]:
        """docno, title and text of a file's content; reads all of it before adding any."""
        if not file.resolve().is_relative_to(folder.resolve()):
            raise BadRow("it is a link to a file outside of the folder")
        megabytes = file.stat().st_size / 1e6
        if megabytes > self.max_megabytes:
            raise BadRow(f"it has {megabytes:,.1f} MB; dataset.max_megabytes={self.max_megabytes:g}")
        most = self.max_megabytes * 1e6
        require_small_archive(file, most)
        found, size = [], 0
        for section in read(file, self.encoding):
            size += len(section.text)
            if size > most:
                raise BadRow(f"its text has more than dataset.max_megabytes={self.max_megabytes:g}")
            found.append(section)
        if not self.sections:
            found = [Section("", "", "\n\n".join(section.text for section in found))]
        docno = _escaped(path)
        return [
            (
                f"{docno}#{_escaped(section.anchor)}" if section.anchor else docno,
                f"{file.name}, {section.label}" if section.label else file.name,
                section.text,
            )
            for section in found
        ]


def _escaped(text: str) -> str:
    """White space, % and # as in a URL: a docno holds no white space, and %p marks chunks."""
    return re.sub(r"[\s%#\0]", lambda match: quote(match[0]), text)
