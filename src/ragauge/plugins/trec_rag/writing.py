"""Writes a finished job as files of TREC RAG: answers, ranking with ir_metadata, nuggets and assignments."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ragauge.contract import __version__
from ragauge.contract.job_files import DETAILS_FILE, OUTCOMES_FILE, read_table
from ragauge.contract.output_files import refuse_foreign, replacing, write_output
from ragauge.contract.record import RECORD_FILE, JobRecord
from ragauge.measures.rankings import write_trec_run
from ragauge.plugins.export.samples import samples, stored
from ragauge.plugins.trec_rag.answers import MOST_REFERENCES, RagAnswer, Sentence, sentences_of
from ragauge.plugins.trec_rag.system import METADATA, REFERENCES, RUN_ID, TOPIC_ID

_RANKED = ("reranked", "without_own", "rewritten", "run")  # the stages that may make a job's run, the last first
_START, _END = "# ir_metadata.start", "# ir_metadata.end"
# How the files begin that ragauge writes; answers as in 2024 or in 2025.
_MARKS: Mapping[str, Sequence[str]] = {
    "answers.jsonl": ('{"run_id": ', '{"metadata": '),
    "run.trec": (_START,),
    "nuggets.jsonl": ('{"query": ',),
    "assignments.jsonl": ('{"query": ',),
}


def write_files(
    folder: Path, out: Path, run_id: str | None, year: int | None, team: str, force: bool = False
) -> dict[str, int]:
    """Writes the files of the job in a folder; returns the number of rows of each.

    answers.jsonl, run.trec, and, where nuggets were measured, nuggets.jsonl and assignments.jsonl.
    run_id, year: None is that of a participant's run that was read, else the retriever's name and 2024.
    DataError where the folder holds no finished job. ConfigError where one of the files is there, ragauge did not write
    it, and force is not set; then none is written.
    """
    for name, mark in _MARKS.items():
        refuse_foreign(out / name, mark, force)
    answers = list(rag_answers(folder, run_id, year, team))
    record = JobRecord.read(folder / RECORD_FILE)
    write_output(out / "answers.jsonl", "".join(one.line() for one in answers))
    written = {"answers.jsonl": len(answers)}
    run = stored(record, next(stage for stage in _RANKED if stage in record.entries), "run")
    if len(run):
        tag = answers[0].run_id if answers else str(run_id)
        with replacing(out / "run.trec") as draft:
            write_trec_run(run, draft, tag)
            body = draft.read_text(encoding="utf-8")
            draft.write_text(ir_metadata(metadata_of(record, tag)) + body, encoding="utf-8")
        written["run.trec"] = body.count("\n")
    nuggets = _nuggets(folder, {str(one.topic_id): one for one in answers})
    if nuggets:
        lines = [{**row, "nuggets": [_without(one, "assignment") for one in row["nuggets"]]} for row in nuggets]
        names = ("query", "qid", "nuggets")
        _write(out / "nuggets.jsonl", [{name: row[name] for name in names} for row in lines])
        _write(out / "assignments.jsonl", nuggets)
        written |= {"nuggets.jsonl": len(nuggets), "assignments.jsonl": len(nuggets)}
    return written


def rag_answers(folder: Path, run_id: str | None, year: int | None, team: str) -> Iterator[RagAnswer]:
    """The answers of a job, by topic; omits those that a sample left out.

    Those of a participant's run are what was read. Other answers cite by the marks in their text: references are the
    documents of the context, or, where these are more than the track allows, those that are cited. A mark without a
    passage is left out.
    """
    rows = list(samples(folder))
    outcomes = read_table(folder, OUTCOMES_FILE).set_index("qid")
    record = JobRecord.read(folder / RECORD_FILE)
    for one in rows:
        row = {name: value for name, value in outcomes.loc[one["qid"]].items() if isinstance(value, str)}
        text = row.get("cited_answer", one["response"])
        sentences = sentences_of(text) if text else ()
        metadata = json.loads(row[METADATA]) if METADATA in row else None
        wanted = year or (2024 if metadata is None else 2025)
        topic_id, name = one["qid"], run_id or row.get(RUN_ID) or str(record.choices["retriever"])
        if REFERENCES in row:
            topic_id, references = json.loads(row[TOPIC_ID]), tuple(json.loads(row[REFERENCES]))
        else:
            documents = [docno.partition("%p")[0] for docno in one["docnos"]]
            references, sentences = _cited(documents, sentences, MOST_REFERENCES[wanted])
        if wanted == 2025:
            metadata = metadata or {"team_id": team, "run_id": name, "type": "automatic", "narrative_id": topic_id,
                                    "narrative": one["user_input"]}  # fmt: skip
            metadata |= {"run_id": name}
        yield RagAnswer(topic_id, one["user_input"], name, references, sentences, metadata if wanted == 2025 else None)


def _cited(
    documents: list[str], sentences: tuple[Sentence, ...], most: int
) -> tuple[tuple[str, ...], tuple[Sentence, ...]]:
    """The distinct references, and the sentences with positions in them."""
    known = [[documents[at] for at in one.citations if at < len(documents)] for one in sentences]
    references = list(dict.fromkeys(documents))
    if len(references) > most:
        cited = {docno for of in known for docno in of}
        references = [docno for docno in references if docno in cited][:most]
    place = {docno: at for at, docno in enumerate(references)}
    places = [tuple(dict.fromkeys(place[docno] for docno in of if docno in place)) for of in known]
    return tuple(references), tuple(replace(one, citations=at) for one, at in zip(sentences, places, strict=True))


def _nuggets(folder: Path, answers: Mapping[str, RagAnswer]) -> list[dict[str, Any]]:
    """The rows of nuggetizer's assignments, if the job measured nuggets."""
    if not (folder / DETAILS_FILE).is_file():
        return []
    details = read_table(folder, DETAILS_FILE)
    details = details[details["measure"].eq("nuggets_strict_vital") & details["detail"].notna()]
    found = []
    for qid, detail in zip(details["qid"], details["detail"], strict=True):
        of, said = answers[qid], json.loads(detail).get("nuggets")
        if said is None:
            continue
        nuggets = [
            {"text": one["nugget"], "importance": one["importance"], "assignment": one["support"]} for one in said
        ]
        found.append(
            {
                "query": of.topic,
                "qid": of.topic_id,
                "answer_text": of.text,
                "response_length": of.length,
                "run_id": of.run_id,
                "nuggets": nuggets,
            }
        )
    return found


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    write_output(file, "".join(json.dumps(row) + "\n" for row in rows))


def metadata_of(record: JobRecord, tag: str) -> dict[str, Any]:
    """The parts of ir_metadata that the job can fill in: platform, implementation, method, data and research goal.

    Source: Breuer, Keller and Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments, SIGIR 2022.
    """
    choices = {name: value for name, value in record.choices.items() if value not in (None, "None", "none")}
    parts = ("rewriter", "retriever", "reranker")
    return {
        "tag": tag,
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine()}},
            "operating system": {"kernel": platform.release(), "distribution": platform.system()},
            "software": {"libraries": {"python": [f"ragauge=={__version__}"]}, "python": platform.python_version()},
        },
        "research goal": {"evaluation": {"reported measures": list(record.rankings.values())}},
        "implementation": {
            "executable": {"cmd": " ".join(["ragauge", *record.overrides])},
            "source": {"lang": "python"},
        },
        "method": {
            "automatic": True,
            "retrieval": [{"name": choices[part], "method": part} for part in parts if part in choices],
        },
        "data": {"test collection": {"name": record.dataset["name"], "digest": record.dataset["digest"]}},
    }


def ir_metadata(metadata: Mapping[str, Any]) -> str:
    """The header of a run: YAML in comments, between `# ir_metadata.start` and `# ir_metadata.end`."""
    text = yaml.safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return "\n".join([_START, *(f"# {line}" for line in text.splitlines()), _END]) + "\n"


def read_ir_metadata(run: str) -> dict[str, Any] | None:
    """The metadata in the header of a run's text; None if it has none."""
    lines = run.splitlines()
    if _START not in lines or _END not in lines:
        return None
    of = lines[lines.index(_START) + 1 : lines.index(_END)]
    found: dict[str, Any] = yaml.safe_load("\n".join(line.removeprefix("#").removeprefix(" ") for line in of))
    return found
