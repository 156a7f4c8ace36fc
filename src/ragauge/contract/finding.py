"""A finding: one result about a job, a sweep's jobs or compared runs, and its display.

A finding is one class with a name, a `compute` and a `show`. Terminal, HTML, CSV, Markdown and MLflow take its results
and know no finding by name. So a new one is a class and a line in a list: for a job or a sweep in
`ragauge.findings.order` and `of_sweeps`, for a comparison in `ragauge.compare._order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ragauge.contract.jobs import Compared, Job, Jobs
    from ragauge.contract.measures import AnswerMeasureInfo
    from ragauge.contract.metrics import Metric
    from ragauge.contract.settings import Settings

Kind = Literal[
    "score", "share", "points", "signed", "whole", "p", "usd", "seconds", "milliseconds"
]  # how a number is written (ragauge.show.formats)


BEST, DIFFERS = "best", "†"  # tags: the best of its column; a number that differs from the baseline's


@dataclass(frozen=True)
class Num:
    """A number in a table, with its interval and a tag such as "best"; None and NaN show as a dash."""

    value: float | None
    kind: Kind = "score"
    lo: float | None = None
    hi: float | None = None
    tag: str = ""
    note: str = ""  # small, after the number


@dataclass(frozen=True)
class Tagged:
    """A text with a tag (coloured by tone "bad" or "none") and a small line below."""

    text: str
    tag: str = ""
    tone: Literal["", "bad", "none"] = ""
    below: str = ""


@dataclass(frozen=True)
class Code:
    """A command or a setting, as it is typed."""

    text: str


Cell = str | Num | Tagged | Code


@dataclass(frozen=True)
class Col:
    """A column: its title, a small line below, and whether its cells are left-aligned and may wrap.

    on_paper: whether it stands in LaTeX, too.
    """

    title: str
    note: str = ""
    left: bool = False
    wrap: bool = False
    on_paper: bool = True


Heads = str | Sequence[Col | str]


def columns_of(heads: Heads) -> list[Col]:
    """`Grid.columns` as `Col`s."""
    return [_column(one) for one in (heads.split(" | ") if isinstance(heads, str) else heads)]


def _column(head: Col | str) -> Col:
    if isinstance(head, Col):
        return head
    title, _, note = head.removeprefix("<").partition(" / ")
    return Col(title, note, left=head.startswith("<"))


class Block:
    """A piece of a section: a paragraph, a table, a picture, ..."""


@dataclass(frozen=True)
class Grid(Block):
    """A table; the first column names the row. `label` is read to those who do not see it.

    Columns are `Col`s or texts: "Best N / observed" has a small line under its title, the cells of "<Measure"
    stand left, and "System | N" are two. A row without cells parts those above it from those below.
    """

    label: str
    columns: Heads
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Text(Block):
    """A paragraph; what stands between backticks is code. `tag` stands before it.

    style: "" for running text, "small" for the text that explains a table, "note" for limits of the numbers. page: the
    http address that a click on the paragraph opens.
    """

    text: str
    style: Literal["", "small", "note"] = ""
    tag: str = ""
    tone: Literal["", "bad", "none"] = ""
    page: str = ""


@dataclass(frozen=True)
class Heading(Block):
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Picture(Block):
    """One of the figures of the finding, by name; `alt` is read to those who do not see it."""

    figure: str
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that are opened by a click on the summary."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Facts(Block):
    """Terms, each with its text."""

    rows: Sequence[tuple[str, Block | Sequence[Block]]]


@dataclass(frozen=True)
class Preformatted(Block):
    """Text whose line breaks stay."""

    text: str


@dataclass(frozen=True)
class Bullets(Block):
    """A list of texts."""

    items: Sequence[str | Tagged]
    numbered: bool = False


@dataclass(frozen=True)
class Marked(Block):
    """A passage as stretches (text, marks, strong); marks are the numbers of the matches there."""

    where: str
    pieces: Sequence[tuple[str, Sequence[int], bool]]


@dataclass(frozen=True)
class Article(Block):
    """Blocks about one thing in a frame of their own, under a small line and a title."""

    meta: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    """A section of the report: its heading, and its blocks in order. folded: whether a click opens them."""

    heading: str
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True)
class Card:
    """A headline number: its title, the number, and a line below."""

    title: str
    number: str
    below: str = ""


@dataclass(frozen=True)
class Found:
    """The results of a finding.

    value: for the findings after it, and for Python. metrics: for the MLflow run, each a finite number.
    steps: charts over n_tokens, {metric: {n_tokens: value}}. days: charts over days, {metric: {YYYYMMDD:
    value}}. tables: CSV files by name. logged: tables of MLflow's viewer by name. files: other artifacts by
    their path in the run, each with what writes it there. model: a fitted predictor with an example of its
    input, or the folder that holds one, kept with the run. record: its entry in a job's `job.json`.
    """

    value: Any = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    steps: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    days: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    logged: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    model: tuple[Any, pd.DataFrame] | Path | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """The display of a finding: sections of the report, terminal lines, figures, cards and notes.

    sections: usually one. notes: sentences that limit all numbers of the report; they stand at its foot, with a link
    at its head, and of a job they are warnings on the terminal. lead: sentences that report and the note of a sweep's
    MLflow run begin with, and the terminal ends with. A job adds them to the note of its run, and prints those that no
    job of its sweep printed.
    """

    sections: Sequence[Section] = ()
    lines: Sequence[str] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    cards: Sequence[Card] = ()
    notes: Sequence[str] = ()
    lead: Sequence[str] = ()


Founds = Mapping[str, Any]  # the value of every finding before, by name; one that found nothing is not there


class Finding:
    """A finding about comparable jobs.

    name: unique; what later findings read it by. after: the name of the finding behind which one of a package
    is computed and shown; None: behind all but what was run. metrics: those that it may log into the sweep's MLflow
    run. `compute` returns None where there is nothing to find; `show` is then not called, and nothing is shown of it.
    """

    group: ClassVar[str] = "ragauge.findings"  # of entry points: a package's, as package.module:Class
    name: ClassVar[str]
    after: ClassVar[str | None] = None
    metrics: ClassVar[Sequence[Metric | str]] = ()

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The results about the jobs; `found` holds the values of earlier findings."""
        raise NotImplementedError

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """How the value is shown; nothing unless said otherwise."""
        return Shown()


After = Literal["scores", "answers", "verdicts", "all"]


class JobFinding:
    """A finding about one job, logged into its MLflow run.

    name: unique; what later findings read it by. after: the output that a finding needs. Those that need `scores` are
    computed, logged and written before an LLM is asked. Those that need `answers` or `verdicts` follow as soon as these
    are there; verdicts come at the end of a sweep where its jobs are judged together. `all` is the end of a job, with
    or without verdicts. metrics: those that it may log; a gate may name them, and `compare` shows those of a package's
    finding.

    A job shows the lines, notes and figures of a finding. Where two findings have a metric of one name, that of the
    first counts.
    """

    group: ClassVar[str] = "ragauge.job_findings"
    group_on_use: ClassVar[str] = "ragauge.job_findings.on_use"  # those that a job loads where its config uses them
    name: ClassVar[str]
    after: ClassVar[After] = "verdicts"
    metrics: ClassVar[Sequence[Metric | str]] = ()

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The results about the job, or None; `found` holds the values of earlier findings."""
        raise NotImplementedError

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for wrong settings of the finding, before any work; measures: the answer measures."""

    def needs(self, job: Job, answers: pd.DataFrame | None) -> list[pd.DataFrame]:
        """The LLM requests of computing it, as in `ragauge.experiment.dry_run`, for a dry run.

        answers: those of the job, as far as they are known; None where no LLM is chosen.
        """
        return []

    def show(self, job: Job, value: Any, found: Founds) -> Shown:
        """How the value is shown; nothing unless said otherwise."""
        return Shown()


class ComparisonFinding:
    """A finding about compared runs, from their question tables in MLflow.

    name: unique. A comparison shows its notes and sections: their tables and paragraphs. Its CSV files hold two of its
        tables: `runs`, a row per run_id, and `topics`, a row per run_id and qid.
    """

    group: ClassVar[str] = "ragauge.comparison_findings"
    name: ClassVar[str]

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """The results about the runs, or None; `found` holds the values of earlier findings."""
        raise NotImplementedError

    def show(self, runs: Compared, value: Any, found: Founds) -> Shown:
        """How the value is shown; nothing unless said otherwise."""
        return Shown()
