"""A finished job as a file of samples, one row per question, for `experiment=recorded` and RAGAS."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NOT_SAMPLED
from ragauge.contract.errors import DataError
from ragauge.contract.job_files import OUTCOMES_FILE, read_table
from ragauge.contract.output_files import refuse_foreign, write_output
from ragauge.contract.record import RECORD_FILE, JobRecord
from ragauge.contract.topics import HISTORY, attributes_of, references
from ragauge.retrieval.contexts import contexts_at

SAMPLES_FILE = "samples.jsonl"
_NO_CONTEXTS = {"retrieved_contexts": None, "docnos": None}


def write_samples(folder: Path, out: Path | None = None, force: bool = False) -> tuple[Path, int]:
    """Writes the job's samples in a folder as JSON Lines; returns the file and their number.

    RAGAS's names, and qid, docnos, label, error and the topic's attributes beside them. The contexts
    are what the LLM was given, cut at the job's n_tokens. Without `out` the file stands in the folder.
    ConfigError if another file is there and force is not set. DataError if the folder holds no finished job, or the
    store no longer has its contexts.
    """
    path = out or folder / SAMPLES_FILE
    refuse_foreign(path, '{"qid": ', force)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in samples(folder)]
    write_output(path, "".join(lines))
    return path, len(lines)


def samples(folder: Path) -> Iterator[dict[str, Any]]:
    """The samples of `write_samples`, in topic order; omits those that a sample left unanswered."""
    missing = [name for name in (RECORD_FILE, OUTCOMES_FILE) if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{folder} is no folder of a finished job: it holds no {missing[0]}; of a sweep name a job's, "
            "such as multirun/<date>/<time>/0"
        )
    record, outcomes = JobRecord.read(folder / RECORD_FILE), read_table(folder, OUTCOMES_FILE)
    if not record.entries:
        raise DataError(f"{folder}: its job retrieved nothing, so there are no samples")
    record.require("store")
    topics, evidence = stored(record, "dataset", "topics"), stored(record, "dataset", "evidence")
    layouts, prefixes = (stored(record, "context", frame) for frame in ("layouts", "prefixes"))
    contexts = contexts_at(layouts, prefixes, record.n_tokens).merge(
        prefixes.loc[prefixes["n_tokens"] == record.n_tokens, ["qid", "layout"]]
    )
    contexts = contexts.merge(layouts[["qid", "layout", "starts"]], on=["qid", "layout"]).set_index("qid")
    parts = evidence.dropna(subset="text").sort_values(["qid", "part"]).groupby("qid")["text"].agg(list)
    rows, known, unknown = outcomes.set_index("qid"), references(topics), _without_contexts(record)
    attributes = attributes_of(topics)
    for topic in topics.to_dict("records"):
        qid = topic["qid"]
        row, context = rows.loc[qid], contexts.loc[qid]
        if row["answer_status"] == NOT_SAMPLED:
            continue
        answered = isinstance(row["answer"], str)
        failed = not answered and isinstance(row["answer_error"], str)
        yield {
            "qid": qid,
            "user_input": topic["query"],
            **({HISTORY: list(topic[HISTORY])} if len(topic.get(HISTORY, ())) else {}),
            **(_NO_CONTEXTS if qid in unknown else _contexts(context)),
            "response": row["answer"] if answered else None,
            **({"error": row["answer_error"]} if failed else {}),
            **({"reference": known[qid][0]} if known[qid] else {}),
            **({"references": list(known[qid][1:])} if len(known[qid]) > 1 else {}),
            **({"unanswerable": True} if topic.get("unanswerable", False) else {}),
            "reference_contexts": list(parts.get(qid, [])),
            **({} if pd.isna(row["label"]) else {"label": int(row["label"])}),
            **{name: topic[name] for name in attributes if not pd.isna(topic[name])},
        }


def _contexts(context: Mapping[Any, Any]) -> dict[str, Any]:
    docnos = list(context["docnos"])
    return {"retrieved_contexts": _pieces(context["text"], context["starts"][: len(docnos)]), "docnos": docnos}


def _without_contexts(record: JobRecord) -> set[str]:
    """The topics with unknown contexts, in a job of texts brought by a system."""
    of_run = record.entries.get("run")
    if of_run is None or not (Path(record.store) / "run" / of_run / "unranked.parquet").is_file():
        return set()
    unranked = stored(record, "run", "unranked")
    return set(unranked.loc[unranked["why"] == NO_CONTEXT, "qid"])


def _pieces(text: str, starts: Any) -> list[str]:
    """The chunks of a context, which single spaces separate."""
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=bool(len(starts)))]


def stored(record: JobRecord, stage: str, frame: str) -> pd.DataFrame:
    """A frame in the store by a stage of the job; DataError if it is gone."""
    try:
        return read_table(Path(record.store) / stage / record.entries[stage], f"{frame}.parquet")
    except (KeyError, OSError, DataError) as error:
        raise DataError(
            f"{record.name}: the store {record.store} no longer holds its {frame}: run the job again"
        ) from error
