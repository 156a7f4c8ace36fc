"""Traces as components: their questions as a dataset, and the traced system as retriever and llm.

All three read one file, the snapshot of a window, so that a sweep measures one and the same window. The
digest of the snapshot is in every key; where it came from is not.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.answering import answer_frame
from ragauge.contract import frames
from ragauge.contract.answering import Generator
from ragauge.contract.checks import require, require_choice
from ragauge.contract.component import Tools
from ragauge.contract.datasets import Dataset, Monitored
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.outcomes import RESERVED
from ragauge.contract.replies import Reply
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.topics import CONVERSATION, TURN
from ragauge.contract.usage import Usage
from ragauge.datasets import BadRow, FileSource, Gatherer, existing_file
from ragauge.llms.replies import answer_alone
from ragauge.plugins.traces.rows import ATTRIBUTES, COLUMNS, Reading
from ragauge.plugins.traces.window import Window, iso, milliseconds, process_start, snapshot
from ragauge.retrieval.passages import name_of
from ragauge.retrieval.ranking import rank_scores
from ragauge.track.connection import tracking_uri

log = logging.getLogger(__name__)

Row = Mapping[str, Any]

_TEXTS = {
    "filter": "MLflow's expressions on traces",
    "uri": "URIs of MLflow",
    "question_path": "JMESPath expressions",
    "answer_path": "JMESPath expressions",
    "evaluation_dataset": "names of MLflow's evaluation datasets",
}


@option("dataset/mlflow_traces")
class MlflowTraces(FileSource, Monitored):
    """The questions of the traces in a window of an MLflow experiment, with their expectations.

    experiment: its name. filter: MLflow's own expression on traces. since, until: an ISO time (UTC
    unless it says otherwise) or a time ago such as 7d; the end is not part of the window. question_path,
    answer_path: JMESPath on the root span's inputs and outputs; None for the shapes of the usual libraries.
    contexts: the last context of an iterative system: the union of its RETRIEVER spans or the last one. qid: trace_id
    or client_request_id. tags: names of tags, or of entries of the trace's metadata, that become attributes.
    evaluation_dataset: one of MLflow's, whose expectations hold for the same questions.
    snapshot: a file that an earlier window was kept in, read in place of MLflow. folder: where snapshots are
    kept. The content decides, not its source: the snapshot's content is in the key, these fields are not.
    """

    component = "mlflow_traces"
    version = 2

    name: str = runtime("mlflow_traces")
    experiment: str | None = runtime(CONF)
    filter: str | None = runtime(CONF)
    since: str | int | None = runtime(CONF)
    until: str | int | None = runtime(CONF)
    uri: str | None = runtime(None)
    question_path: str | None = runtime(CONF)
    answer_path: str | None = runtime(CONF)
    contexts: str = runtime(CONF)
    qid: str = runtime(CONF)
    tags: Sequence[str] = runtime(CONF)
    evaluation_dataset: str | None = runtime(CONF)
    snapshot: str | Path | None = runtime(CONF)
    folder: str | Path = runtime(".ragauge/traces")

    def __post_init__(self) -> None:
        named = isinstance(self.experiment, str) and bool(self.experiment.strip())
        require("dataset.experiment", self.experiment, named, "names of MLflow's experiments")
        super().__post_init__()
        require_choice("dataset.contexts", self.contexts, ("union", "last"))
        require_choice("dataset.qid", self.qid, ("trace_id", "client_request_id"))
        for tag in self.tags:
            free = isinstance(tag, str) and tag not in RESERVED and tag not in (*COLUMNS, *ATTRIBUTES)
            require("dataset.tags", tag, free, "names of tags that no other column of a topic has")
        for key, what in _TEXTS.items():
            value = getattr(self, key)
            given = isinstance(value, str) and bool(value.strip())
            require(f"dataset.{key}", value, value is None or given, f"{what}, and null")
        for key in ("question_path", "answer_path"):
            _compiled(key, getattr(self, key))
        if self.snapshot is None:
            window = self.window
            if window.since is not None and window.until is not None and window.since >= window.until:
                raise ConfigError(f"dataset.since={self.since!r} is not before dataset.until={self.until!r}")

    @property
    def window(self) -> Window:
        """The window, its ends in milliseconds; one that ends now ends at the first read of this process."""
        now = process_start()
        until = milliseconds("until", self.until, now)
        return Window(
            tracking_uri(self.uri),
            str(self.experiment),
            self.filter,
            milliseconds("since", self.since, now),
            round(now * 1000) if until is None else until,
            self.evaluation_dataset,
        )

    def files(self) -> Mapping[str, Path]:
        """The snapshot, read from MLflow once per process; ConfigError if there is nothing to read."""
        if self.snapshot is not None:
            return {"traces": existing_file("snapshot", self.snapshot)}
        paths = (self.question_path, self.answer_path)
        path = _taken(self.window, *paths, self.contexts, self.qid, tuple(self.tags), str(self.folder))
        if not path.is_file():  # somebody cleared the folder meanwhile
            _taken.cache_clear()
            return self.files()
        return {"traces": path}

    @classmethod
    def pinned(cls, spec: Mapping[str, Any], now: float) -> dict[str, Any]:
        """The ends of the config's window as ISO times; an open one ends at `now`."""
        ends = {key: milliseconds(key, spec.get(key), now) for key in ("since", "until")}
        ends["until"] = round(now * 1000) if ends["until"] is None else ends["until"]
        return {key: None if ms is None else iso(ms) for key, ms in ends.items()}

    def window_metrics(self, topics: pd.DataFrame) -> dict[str, float]:
        """Numbers of failed traces and of traces without a RETRIEVER span, and the mean of rounds."""
        return {
            "traces_failed": int(topics["state"].eq("ERROR").sum()),
            "traces_without_retriever": int(topics["rounds"].eq(0).sum()),
            "traces_rounds": float(topics["rounds"].mean()),
        }

    def window_warnings(self, metrics: Mapping[str, float]) -> list[str]:
        """A warning if contexts are empty."""
        n = metrics["traces_without_retriever"]
        return [f"{n} traces have no RETRIEVER span: their contexts are empty"] if n else []

    def has_answers_of(self, llm: Any) -> bool:
        """Whether the llm repeats the traces' answers."""
        return isinstance(llm, TracedAnswers)

    def place(self) -> tuple[str | None, str]:
        """The configured URI of MLflow, and the experiment."""
        return self.uri, str(self.experiment)

    def trace_ids(self, topics: pd.DataFrame) -> dict[str, str]:
        """Every topic's trace id, by qid, for topics [qid, query]."""
        rows = _rows_of(self.files()["traces"], topics)
        return {qid: row["trace_id"] for qid, row in rows.items()}

    def load(self) -> Dataset:
        """The collection, without documents; DataError names the trace and the error.

        Traces of one session are the turns of a conversation, in the order of time, as far as the window has them.
        """
        file = self.files()["traces"]
        gather = Gatherer(self)
        rows = list(read_rows(file))
        for row in rows:
            for part in row["evidence"]:
                if part["docno"] is not None and not gather.has_document(part["docno"]):
                    gather.add_document(part["docno"], "", "")  # its text is not known
        said: dict[str, list[str]] = {}  # by session: its questions and answers so far
        for row in rows:
            if gather.full:
                break
            with gather.row(f"{self.name}, trace {row['trace_id']}") as at:
                at.qid = row["id"]
                _check(row, self)
                attributes = {key: value for key, value in row.items() if key not in COLUMNS}
                earlier = said.setdefault(session, []) if (session := row.get(CONVERSATION)) else []
                if session:
                    attributes[TURN] = len(earlier) // 2 + 1
                gather.add_topic(
                    row["id"],
                    row["user_input"],
                    [] if row["unanswerable"] else row["references"],
                    [(part["docno"], part["text"]) for part in row["evidence"]],
                    attributes,
                    unanswerable=row["unanswerable"],
                    history=list(earlier),
                )
                earlier += [row["user_input"], row["response"] or ""]
        return gather.dataset(None, file)


@lru_cache(maxsize=32)
def _taken(
    window: Window, question: str | None, answer: str | None, contexts: str, qid: str, tags: tuple[str, ...],
    folder: str,
) -> Path:  # fmt: skip
    paths = _compiled("question_path", question), _compiled("answer_path", answer)
    return snapshot(window, Reading(*paths, contexts, qid, tags), Path(folder))


def _compiled(key: str, path: str | None) -> Any:
    if path is None:
        return None
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.compile(str(path))
    except (JMESPathError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"dataset.{key}={path!r} is no JMESPath expression: {said}") from None


def _check(row: Row, source: MlflowTraces) -> None:
    """BadRow for a trace that cannot be a topic."""
    if row["user_input"] is None:
        where = f"at {source.question_path}" if source.question_path else "in the usual places"
        raise BadRow(f"no question {where} of the root span's inputs (dataset.question_path says where it is)")
    if row["id"] is None:
        raise BadRow("it has no client request id (dataset.qid=trace_id takes the trace's own)")


def read_rows(file: Path) -> Iterator[Row]:
    """The rows of a snapshot; DataError names an invalid line."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = json.loads(line)
                lacking = [key for key in COLUMNS if key not in row]
            except (ValueError, TypeError) as error:
                raise DataError(f"{file}, line {number}: not a line of a snapshot of traces: {error}") from None
            if lacking:
                raise DataError(f"{file}, line {number}: {lacking[0]!r} is missing: no snapshot of traces")
            yield row


@dataclass(frozen=True)
class TracedContexts(BringsTexts):
    """The passages of the traces' RETRIEVER spans, in the order of time: the retriever of the traced system."""

    component = "mlflow_traces"

    traces: Any = runtime(None)  # the dataset

    def __post_init__(self) -> None:
        _check_traces("retriever", self.traces)

    def files(self) -> Mapping[str, Path]:
        """The snapshot of the traces."""
        return _of(self.traces).files()

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run` of the topics and the texts of its passages; a trace without RETRIEVER spans has none.

        A passage is named by its document and its text: equal texts of a document are one passage.
        """
        rows = _rows_of(self.files()["traces"], topics)
        found: list[tuple[str, str, int]] = []
        texts: dict[str, str] = {}
        for qid, row in rows.items():
            names = zip(row["retrieved_docnos"], row["retrieved_contexts"], strict=True)
            for place, (document, text) in enumerate(names):
                docno = _passage(document, text)
                texts[docno] = text
                found.append((qid, docno, place))
        qids, docnos, ranks = zip(*found, strict=True) if found else ((), (), ())
        rank = np.array(ranks, dtype=np.int64)
        run = pd.DataFrame({"qid": qids, "docno": docnos}, dtype="str").assign(score=rank_scores(rank), rank=rank)
        brought = pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")
        return frames.check("run", run), brought[~brought["docno"].isin(chunks["docno"])]


@dataclass(frozen=True)
class TracedAnswers(Generator):
    """The answers of the traces' root spans; a failed trace has its error and no answer."""

    component = "mlflow_traces"
    version = 3
    kind = "recorded"

    traces: Any = runtime(None)  # the dataset

    def __post_init__(self) -> None:
        _check_traces("llm", self.traces)

    def files(self) -> Mapping[str, Path]:
        """The snapshot of the traces."""
        return _of(self.traces).files()

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers` with the tokens, US dollars and seconds of the traces; costs nothing now."""
        rows = _rows_of(self.files()["traces"], topics)
        return answer_frame(contexts, [_reply(rows[qid]) for qid in contexts["qid"]])


def _reply(row: Row) -> Reply:
    text, error = row["response"], row["error"]
    if text is None and error is None:
        error = "no answer in the root span's outputs (dataset.answer_path says where it is)"
    tokens = int(row["prompt_tokens"] or 0), int(row["completion_tokens"] or 0)
    usage = Usage(*tokens, float(row["cost_usd"] or 0), float(row["seconds"] or 0))
    return answer_alone(Reply(text, error, usage, cached=True))


def _passage(document: str | None, text: str) -> str:
    """The docno of a passage, equal for equal texts of one document."""
    own = name_of(text)
    return own if document is None else f"{document}%p{own.rpartition('-')[2][:12]}"


def _check_traces(key: str, traces: Any) -> None:
    if not isinstance(traces, MlflowTraces):
        raise ConfigError(
            f"{key}=mlflow_traces gives what dataset=mlflow_traces recorded, and the dataset is another: "
            "choose experiment=mlflow_traces"
        )


def _of(traces: Any) -> MlflowTraces:
    assert isinstance(traces, MlflowTraces)
    return traces


def _rows_of(file: Path, topics: pd.DataFrame) -> dict[str, Row]:
    """The rows of the topics [qid, query] by qid; DataError for a topic that the snapshot lacks.

    Where a client sent one request id several times, the row is that of the first with the topic's question.
    """
    queries = dict(zip(topics["qid"], topics["query"], strict=True))
    rows: dict[str, Row] = {}
    for row in read_rows(file):
        if queries.get(row["id"]) == row["user_input"] is not None:
            rows.setdefault(row["id"], row)
    lacking = [qid for qid in queries if qid not in rows]
    if lacking:
        raise DataError(f"{file.name}: no trace {lacking[0]!r}, which the dataset has")
    return {qid: rows[qid] for qid in queries}
