"""A stage of a job: its reads, its outputs and its component.

Raise its version when its code, or ragauge code that it calls, changes its output:
tests/experiment/test_golden.py fails if that was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import ChatModel, Component, Embedder, Tokenizer, Tools
from ragauge.contract.datasets import Source
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.frames import Batches, columns_of, rows_where
from ragauge.contract.groups import RANKINGS
from ragauge.contract.identity import identity
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo, Measure
from ragauge.contract.retrieval import Chunker, Compressor, ContextOrder, Expander, Reranker, Retriever, Rewriter
from ragauge.contract.topics import HISTORY, STANDALONE
from ragauge.llms.chat_use import TheLLM
from ragauge.store import file_sha256

Frames = Mapping[str, pd.DataFrame]
Made = Mapping[str, pd.DataFrame | Batches]


@dataclass(frozen=True)
class Components:
    """The chosen component of every config group; `answers` is a list of them by name.

    evaluator: the chat model that answer measures ask; TheLLM: the llm, where it is one. engine: where the
    others' work is done, which changes none of their results.
    """

    dataset: Source
    chunker: Chunker
    embedder: Embedder
    tokenizer: Tokenizer
    rewriter: Rewriter
    retriever: Retriever
    reranker: Reranker
    expander: Expander
    compressor: Compressor
    order: ContextOrder
    measure: Measure
    llm: Generator
    evaluator: ChatModel | TheLLM
    answers: Mapping[str, AnswerMeasure]
    judge: Judge
    engine: Engine = field(default_factory=LocalEngine)


@dataclass(frozen=True)
class Budget:
    """n_tokens of this job, and all budgets to lay out, ascending: the grid including n_tokens.

    measures: the names of the measures of its run, over documents or over chunks.
    derived: names of the columns computed from the questions for slices.
    """

    n_tokens: int
    grid: tuple[int, ...]
    measures: tuple[str, ...] = RANKINGS
    derived: tuple[str, ...] = ()


class Incomplete(Exception):
    """Raised by a stage, with its partial output, if a rerun should ask for the missing rows again.

    failed, of: topics without an output, and all, where `max_missing_share` is to be held against them; what
        they are without.
    """

    def __init__(self, frames: Frames, failed: int = 0, of: int = 0, what: str = "contexts") -> None:
        self.frames = frames
        self.failed, self.of, self.what = failed, of, what


@dataclass(frozen=True)
class Read:
    """One thing that a stage reads: a frame, or the folder that another stage filled.

    name: that of the frame, or the label of the stage whose `folder` is read.
    columns: those of the frame that matter; all of them unless some are named.
    optional: further ones that matter where the frame has them.
    before: the name of an earlier stage that makes the frame, too: the frame is read as that stage read it.
    """

    name: str
    columns: tuple[str, ...] = ()
    before: str = ""
    folder: bool = False
    optional: tuple[str, ...] = ()

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the relevant columns; in a dry run, answers may lack some."""
        columns = [name for name in (*self.columns, *self.optional) if name in frame]
        return frame[columns] if columns else frame

    def __str__(self) -> str:
        """Its name in `key.json`."""
        columns = f"[{','.join(self.columns)}]" if self.columns else ""
        before = f"@{self.before}" if self.before else ""
        return f"{self.name}{before}{columns}{'/' if self.folder else ''}"


QUESTIONS = Read("topics", columns=("qid", "query"))
TURNS = Read("topics", columns=("qid", "query"), optional=(HISTORY, STANDALONE))  # with the earlier turns


class Reads:
    """The reads of a stage: `reads["topics"]` is a frame, `reads.folder("index")` a folder.

    Where the stage reads some columns of a frame, it gets these alone. One that is read as it was before an earlier
    stage is asked for by its `Read`.

    declared: the `reads` of the stage; KeyError for anything else.
    stored: the rows of a frame, in batches where they are many; the frame itself unless it is given.
    """

    def __init__(
        self,
        declared: Sequence[Read],
        frame: Callable[[Read], pd.DataFrame],
        folder: Callable[[Read], Path],
        stored: Callable[[Read], pd.DataFrame | Batches] | None = None,
    ) -> None:
        self._declared = {(read.name, read.before, read.folder): read for read in declared}
        self._frame, self._folder, self._rows = frame, folder, stored or frame

    def __getitem__(self, read: str | Read) -> pd.DataFrame:
        declared = self._named(read)
        return declared.of(self._frame(declared))

    def rows(self, read: str | Read) -> pd.DataFrame | Batches:
        """The rows of a frame, in batches if there are many."""
        return self._rows(self._named(read))

    def folder(self, stage: str) -> Path:
        """The folder filled by the stage with this label."""
        return self._folder(self._named(Read(stage, folder=True)))

    def columns(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """All rows of a frame, with these columns."""
        return columns_of(self.rows(name), columns)

    def where(self, name: str, column: str, values: Collection[str]) -> pd.DataFrame:
        """The rows of a frame whose `column` is one of `values`, in order, with a new index."""
        return rows_where(self.rows(name), column, values).reset_index(drop=True)

    def _named(self, read: str | Read) -> Read:
        asked = Read(read) if isinstance(read, str) else read
        found = self._declared.get((asked.name, asked.before, asked.folder))
        if found is None:
            raise KeyError(f"the stage reads {str(asked)!r}, which its `reads` do not name")
        return found


class Stage:
    """One step of a job.

    name: its folder in the store and its time among the metrics (`seconds_<name>`).
    reads: the frames and folders that it reads (`Read`).
    makes: the frames that it makes; none for a stage that fills a folder.
    asks: the column that is missing where an LLM or a judge gave nothing; such output is kept only whole. It
        has the topics of the last of `reads`.
    group: the config group that its own calls of the shared chat model are counted under.
    stored: False where making it costs less than reading it.
    of_files: whether the files that its component reads are in the key.
    infos: how the values are shown, of a stage that makes `answer_values`.
    evaluates: whether the chat model that it asks is the evaluator, and not the llm.
    doing: the line shown while it works, with the names of frames whose numbers of rows it shows; "" shows nothing.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    reads: tuple[Read, ...] = ()
    makes: tuple[str, ...] = ()
    asks: ClassVar[str | None] = None
    group: ClassVar[str] = ""
    stored: ClassVar[bool] = True
    of_files: ClassVar[bool] = False
    infos: Sequence[AnswerMeasureInfo] = ()
    evaluates: ClassVar[bool] = False
    doing: str = ""

    def __init__(self, components: Components, budget: Budget) -> None:
        self.components = components
        self.budget = budget

    @property
    def label(self) -> str:
        """The name under which its folder is read: its own, unless a job has several such stages."""
        return self.name

    @property
    def asks_as(self) -> str:
        """The name under which its calls are counted: the group, or `<group>.<name>` in a list."""
        return self.group

    @property
    def component(self) -> Any:
        """The component that does the work; None if the stage does it itself."""
        return None

    @property
    def uses(self) -> frozenset[str]:
        """Its shared models, whose identities are part of the key."""
        return frozenset() if self.component is None else self.component.uses

    def params(self) -> dict[str, Any]:
        """Everything else that can change the output, as JSON; by default the component's identity."""
        return {} if self.component is None else {"component": identity(self.component)}

    def inputs(self) -> dict[str, str]:
        """Digests of reads other than frames, by name."""
        return digests_of_files(self.component) if self.of_files else {}

    def shown(self, frame: Callable[[str], pd.DataFrame]) -> Sequence[AnswerMeasureInfo]:
        """The `infos` that this job's dataset can have values for; `frame` gives frames by name."""
        return self.infos

    def make(self, reads: Reads, tools: Tools) -> Made:
        """The frames of `makes`; stored ones may come in batches."""
        raise NotImplementedError

    def fill(self, folder: Path, reads: Reads, tools: Tools) -> None:
        """Writes the output of a stage without frames into an empty folder."""
        raise NotImplementedError


def digests_of_files(component: Component) -> dict[str, str]:
    """The digest of every file that a component reads, by its role."""
    return {role: file_digest(path) for role, path in component.files().items()}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
