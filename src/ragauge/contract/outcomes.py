"""The frame `outcomes`, a row per topic of a job: its columns, who makes each, and their check.

Lists of columns follow from `COLUMNS`: what attributes and answer measures may not be called, what MLflow's table of
questions shows, what a comparison reads, and the table in docs/library.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import pandas as pd

from ragauge.contract.frames import JUDGE_CLASSES, SCHEMAS, USAGE, Kind, Schema, check_schema
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.metrics import IR_SCORE, spelled
from ragauge.contract.topics import HISTORY, QUESTIONS, labelled_as

LABEL_OF = "human_label_of"
DRAWN_WITH = "human_probability"
CLUSTER = "topic_cluster"
SHARED = "evidence_cluster"
TARGET = "sample_target"
CAUSE, DECIDED_BY = "failure_cause", "failure_decided_by"
PROBABILITY_COLUMNS = tuple(f"p{c}" for c in JUDGE_CLASSES)
PREFIX = "slice:"
MOST_LABELS = 32  # verdicts on a topic: label, label_2, ...


@dataclass(frozen=True)
class Column:
    """A column, or several of one kind.

    names: `a_{x,y}` stands for a_x and a_y, `*` for a part that only a job knows.
    by: the stage or finding that makes it. what: its meaning. unit: "share" is a number in [0, 1].
    label, better: its name in words, and which end is better.
    of: the file that has it, `outcomes.parquet` (job), `per_question.json` (table) or both; or else frames of several
        jobs (pooled).
    always: whether every job has it. feature: whether a predictor may read it. compared: whether a comparison reads it.
    free: whether an attribute may have the name, too.
    """

    names: str
    by: str
    kind: Kind
    what: str
    unit: str = ""
    label: str = ""
    better: Literal["higher", "lower", ""] = ""
    of: Literal["job", "table", "both", "pooled"] = "both"
    always: bool = True
    feature: bool = False
    compared: bool = False
    free: bool = False


# In the order of MLflow's table of questions, which groups by the first and sets the second side by side.
COLUMNS = (
    Column("query", "dataset", "str", "the question", compared=True),
    Column("outcome", "per_question", "str", "class, IR score and answer in one text", of="table"),
    Column("answer", "answers", "str?", "the answer; missing where none came", compared=True),
    Column("label", "verdicts", "label", "the judge's class of the answer, 1 to 5", compared=True),
    Column(
        "ir_score", "scores", "float?", "how much of the evidence stands in the context",
        unit="share", label=IR_SCORE.label, better=IR_SCORE.better, feature=True, compared=True,
    ),
    Column("answer_reference", "dataset", "str?", "the reference answer", compared=True),
    Column("evidence", "dataset", "list", "the texts of the evidence", of="table", compared=True),
    Column("context", "contexts", "str", "the context; not in tables of more than 1,000 topics", of="table"),
    Column("qid", "dataset", "str", "the id of the topic", compared=True),
    Column(
        "evidence_best", "scores", "float?", "the highest score of a part of the evidence",
        unit="share", label="best evidence part", better="higher", feature=True,
    ),
    Column(
        "evidence_worst", "scores", "float?", "the lowest score of a part of the evidence",
        unit="share", label="worst evidence part", better="higher", feature=True,
    ),
    Column(
        "answer_in_context", "contexts", "float?", "1 where a reference answer stands in the context, 0 elsewhere",
        label="reference in the context", better="higher", feature=True,
    ),
    Column("n_used", "contexts", "float", "size of the context", "tokens", "tokens of the context", feature=True),
    Column(
        "score_gap", "run", "float", "the retriever's first score less its second",
        label="first score less the second", feature=True,
    ),
    Column("context_chars", "contexts", "int", "size of the context", unit="characters", of="table"),
    Column("chunks", "contexts", "str", "the docnos of the first ten chunks of the context", of="table"),
    Column("judge_raw", "verdicts", "str?", "the judge's reply"),
    Column("judge_status", "verdicts", "str?", "`ok`, or why there is no verdict", compared=True),
    Column("answer_status", "answers", "str", "`ok`, or why there is no answer"),
    Column("answer_error", "answers", "str?", "the error of a missing answer"),
    Column(
        f"label_{{{','.join(map(str, range(2, MOST_LABELS + 1)))}}}", "verdicts", "float?",
        "classes by further prompts of the judge, or of further answers; 0 is a missing verdict",
        always=False, compared=True,
    ),
    Column("unanswerable", "dataset", "bool", "the documents do not answer the question", always=False, compared=True),
    Column("queries", "queries", "str?", "what was searched for", of="table", always=False),
    Column("cited_answer", "answers", "str?", "the answer with its citations (`llm.cite`)", always=False, free=True),
    Column("human_label", "people", "label", "the class that people gave the answer", always=False, compared=True),
    Column(LABEL_OF, "people", "str", "which answers the people's labels are of", always=False, compared=True),
    Column(
        DRAWN_WITH, "people", "float?", "with which probability the answer was drawn to be labelled",
        unit="share", always=False, compared=True,
    ),
    Column("judged", "verdicts", "bool", "the topic is in the sample that was judged", always=False, compared=True),
    Column("stratum", "verdicts", "float", "the stratum of the sample", always=False, compared=True),
    Column(CLUSTER, "dataset", "str", "the cluster of topics that are resampled together", always=False, compared=True),
    Column(SHARED, "dataset", "str", "the topics that share documents of their evidence", always=False, compared=True),
    Column(
        f"p{{{','.join(map(str, JUDGE_CLASSES))}}}", "predictor", "float",
        "the predicted probability of each class, by a fit that did not see the topic",
        unit="share", always=False, compared=True,
    ),
    Column("earlier_label", "earlier", "label", "the class in the run of `judge.earlier`", always=False),
    Column(
        "prompts_are", "verdicts", "str", "where further labels come from: fixed prompts, a sample of prompts, repeats",
        always=False, compared=True,
    ),
    Column(TARGET, "sample", "str", "the target of estimates: population, topics", always=False, compared=True),
    Column("evidence_in_context", "failures", "str?", "all, some or none of the evidence", always=False),
    Column("evidence_place", "failures", "str?", "in which third of the context the evidence stands", always=False),
    Column(CAUSE, "failures", "str?", "why the topic failed; missing where it did not", always=False, compared=True),
    Column(DECIDED_BY, "failures", "str?", "the rule that decided the cause", always=False),
    Column(f"{PREFIX}*", "slices", "str", "the slice of the topic, by each of `slices`", always=False),
    Column("n_tokens", "contexts", "int", "the budget of the context", unit="tokens", of="job"),
    Column(f"{{{','.join(GROUPS)}}}", "config", "str", "the option of each group of components", of="job"),
    Column("reason", "verdicts", "str?", "why the judge chose the class", of="job", always=False),
    Column(HISTORY, "dataset", "list", "the earlier turns of a conversation", of="job", always=False),
    Column(
        f"{{{','.join(map(labelled_as, QUESTIONS))}}}", "people", "float?", "people's yes (1) or no (0) to a question",
        of="job", always=False,
    ),
    Column("system", "sweep", "str", "the settings that the sweep varied, `n_tokens` aside", of="pooled"),
    Column("weight", "estimates", "float", "how many rows a judged row stands for, over their mean", of="pooled"),
)  # fmt: skip


def names(columns: Iterable[Column] = COLUMNS) -> tuple[str, ...]:
    """The names of columns, each by itself."""
    return tuple(spelled(column.names for column in columns))


# What is known before an LLM is asked.
FEATURES = names(c for c in COLUMNS if c.feature)
# Topics are joined with these frames, so no attribute has the name of one of their columns.
_JOINED = {*SCHEMAS["topics"].columns, *SCHEMAS["topics"].optional, *SCHEMAS["evidence"].columns}
RESERVED = frozenset(
    {ANSWERS, *names(c for c in COLUMNS if not c.free), *_JOINED, *SCHEMAS["verdicts"].columns} - {*USAGE}
)


def _kinds(columns: Iterable[Column]) -> dict[str, Kind]:
    return {name: column.kind for column in columns for name in spelled([column.names])}


_OF_JOB = [column for column in COLUMNS if column.of in ("job", "both")]
_SCHEMA = Schema(
    ("qid",), _kinds(c for c in _OF_JOB if c.always), _kinds(c for c in _OF_JOB if not c.always and "*" not in c.names)
)


class UndeclaredColumn(DeprecationWarning):
    """A column of outcomes that no `Column` declares; an error in ragauge's own tests."""


def check(frame: pd.DataFrame, given: Collection[str]) -> pd.DataFrame:
    """The frame itself, if it is a job's outcomes; DataError names a column that is missing or of another kind.

    given: attributes of topics and answers, and answer measures. Any further column passes, with a warning that Python
    shows to developers alone.
    """
    known = [*_SCHEMA.columns, *_SCHEMA.optional, f"{PREFIX}*", *given]
    for column in map(str, frame.columns):
        if not any(fnmatchcase(column, name) for name in known):
            told = f"outcomes: column {column!r} has no line in ragauge.contract.outcomes.COLUMNS"
            warnings.warn(told, UndeclaredColumn, stacklevel=2)
    return check_schema("outcomes", _SCHEMA, frame)
