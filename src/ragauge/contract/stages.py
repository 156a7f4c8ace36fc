"""The stages of a job: what each declares (`Stage`), and what findings read of all of them (`Stages`).

Raise a stage's version when its code, or ragauge code that it calls, changes its output:
tests/experiment/test_golden.py fails if that was forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pandas as pd

from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import ChatModel, Embedder, TheLLM, Tokenizer, Tools
from ragauge.contract.datasets import Source
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.frames import Batches, columns_of, rows_where
from ragauge.contract.groups import RANKINGS
from ragauge.contract.identity import identity
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo, Measure
from ragauge.contract.retrieval import Chunker, Compressor, ContextOrder, Expander, Reranker, Retriever, Rewriter
from ragauge.contract.topics import HISTORY, STANDALONE
from ragauge.contract.workplace import Workplace

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
    replies_as: the prefix of the metrics of replies that stand in the frame it makes, each with its `variant`.
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
    replies_as: str | None = None
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

    def shown(self, frame: Callable[[str], pd.DataFrame]) -> Sequence[AnswerMeasureInfo]:
        """The `infos` that this job's dataset can have values for; `frame` gives frames by name."""
        return self.infos

    def make(self, reads: Reads, tools: Tools) -> Made:
        """The frames of `makes`; stored ones may come in batches."""
        raise NotImplementedError

    def fill(self, folder: Path, reads: Reads, tools: Tools) -> None:
        """Writes the output of a stage without frames into an empty folder."""
        raise NotImplementedError


@dataclass(frozen=True)
class Making:
    """Seconds and US dollars (chat models) that making a stage's output took, in any job.

    Replies of the ledger count as what they cost when they were paid for. NaN: unknown.
    """

    seconds: float
    cost_usd: float


class StoredOutput(Protocol):
    """An entry of the store: its digest, its frames, and whether this process made it."""

    @property
    def digest(self) -> str: ...
    @property
    def made(self) -> bool: ...
    def frame(self, name: str) -> pd.DataFrame: ...


class CountedChat(ChatModel):
    """A chat model of a job that records its replies."""

    chat: Any  # the model that is asked

    @abstractmethod
    def replies(self, group: str) -> pd.DataFrame:
        """The replies to a group's component so far, a row per prompt, as input of `costs`.

        For a list of components, such as `answers`, the component of all of them, or of one: `answers.<name>`. `qid` is
        a number.
        """


class Stages(ABC):
    """The stages of one job, as its findings read them; each runs on first use.

    n_tokens: the job's budget. measures: the names of the measures of its run. slice_weights: how slices count in
    averages. making: seconds and cost of each output, by the stage's name.
    """

    components: Components
    store: Workplace
    n_tokens: int
    measures: tuple[str, ...]
    slice_weights: Mapping[str, Mapping[str, float]]
    making: dict[str, Making]

    @property
    @abstractmethod
    def stages(self) -> list[Stage]:
        """The job's stages in order."""

    @property
    @abstractmethod
    def question_stages(self) -> list[Stage]:
        """The stages that work on a question until it is answered, in order."""

    @property
    @abstractmethod
    def tools(self) -> Tools:
        """The shared models; vectors are kept in the store."""

    @property
    @abstractmethod
    def evaluator_chat(self) -> CountedChat | None:
        """The chat model of answer measures: the evaluator, else the job's; None without either."""

    @property
    @abstractmethod
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The infos of the answer measures, in the order of the stages."""

    @property
    @abstractmethod
    def rewritten(self) -> bool:
        """Whether the job searches for a rewriter's queries (frame `queries`) instead of the questions."""

    @property
    @abstractmethod
    def several(self) -> bool:
        """Whether a topic has more than one verdict (`llm.repeat`, `judge.per_answer`)."""

    @abstractmethod
    def chat_of(self, stage: Stage) -> CountedChat | None:
        """The chat model of a stage's component: its own, the evaluator, or the llm."""

    @abstractmethod
    def frame(self, name: str) -> pd.DataFrame:
        """A frame of the job, such as topics, run, contexts, answers or verdicts (docs/library.md)."""

    @abstractmethod
    def frame_for(self, stage: str, name: str) -> pd.DataFrame:
        """The version of a frame that a stage reads, if several stages make it."""

    @abstractmethod
    def rows(self, name: str) -> pd.DataFrame | Batches:
        """The rows of a frame of the job, in batches if there are many."""

    @abstractmethod
    def entry(self, stage: str) -> StoredOutput:
        """The stored output of a stage, made now if absent."""

    @abstractmethod
    def entry_of(self, frame: str) -> StoredOutput:
        """The stored output with a frame, of the last stage that makes it."""

    @abstractmethod
    def entries_of(self, names: Iterable[str]) -> dict[str, str]:
        """<stage>/<digest> of the store entry by frame, for frames that the job read from or wrote to the store."""

    @abstractmethod
    def identity_of(self, component: Any) -> dict[str, Any]:
        """The component's identity; for a chat model also the name that its server reports."""

    @property
    def contexts(self) -> pd.DataFrame:
        """C_N of every topic at this job's n_tokens."""
        return self.frame("contexts")

    @property
    def answers(self) -> pd.DataFrame:
        """The answers at this job's n_tokens; stored when none is missing."""
        return self.frame("answers")

    @property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts on this job's answers, those to judge; stored when none is missing."""
        return self.frame("verdicts")

    @property
    @abstractmethod
    def all_answers(self) -> pd.DataFrame:
        """The answers of all samples for counting costs, each with its own qid."""

    @property
    @abstractmethod
    def all_verdicts(self) -> pd.DataFrame:
        """The verdicts of all samples and repeats for counting costs; requests of repeats differ."""

    @property
    @abstractmethod
    def repeated(self) -> pd.DataFrame:
        """A row per answered topic, sample and repeat."""

    @property
    @abstractmethod
    def retrieved(self) -> pd.DataFrame:
        """One row per topic at this n_tokens before any LLM call, with the columns of `clusters`."""

    @property
    @abstractmethod
    def foreseeing(self) -> pd.DataFrame:
        """`retrieved` with the measures that need no answer, as input of a predictor."""

    @property
    @abstractmethod
    def clusters(self) -> pd.DataFrame:
        """The chosen clusters and those of shared evidence, by qid."""

    @property
    @abstractmethod
    def unjudged(self) -> frozenset[str]:
        """The topics without a reference answer that the judge needs."""

    @abstractmethod
    def to_judge(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the topics to judge: sampled, and with a reference to judge by."""
