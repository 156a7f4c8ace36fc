"""What a job came to, read back from MLflow and, where it is on this machine, from the store."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE
from ragauge.experiment import whereabouts
from ragauge.retrieval.contexts import contexts_at
from ragauge.show import notebook
from ragauge.store import Store
from ragauge.track import LoggedRun, Reader

_TABLE, _RUN = "per_question.json", "run.trec"


class Logged:
    """An MLflow run of ragauge's: what of it is the same for a job and for a sweep.

    Artifacts are read on first use. run_id, name and status (FINISHED, FAILED, RUNNING, KILLED) are MLflow's.
    """

    def __init__(self, run: LoggedRun, reader: Reader) -> None:
        self._run, self._reader = run, reader
        self.run_id, self.name, self.status = run.run_id, run.name, run.status

    @property
    def experiment(self) -> str:
        """The name of the MLflow experiment."""
        return self._run.experiment

    @property
    def metrics(self) -> dict[str, float]:
        """The last value of every metric by name: docs/method.md says what each is."""
        return dict(self._run.metrics)

    @property
    def params(self) -> dict[str, str]:
        """The configuration, flat, as MLflow holds it: all values are texts."""
        return dict(self._run.params)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the run by name, as tables/*.csv holds them; {} where it has none."""
        return {
            name.removesuffix(".csv"): pd.read_csv(
                io.BytesIO(content), dtype={"qid": "str"}, keep_default_na=False, na_values=[""]
            )
            for name, content in sorted(self._reader.contents(self.run_id, "tables").items())
            if name.endswith(".csv")
        }

    @cached_property
    def figures(self) -> dict[str, notebook.Figure]:
        """The figures of the run by name; each shows itself in a notebook, and `png` holds its bytes."""
        return {
            name.removesuffix(".png"): notebook.Figure(content)
            for name, content in sorted(self._reader.contents(self.run_id, "figures").items())
            if name.endswith(".png")
        }


class JobResult(Logged):
    """One job: its frames, metrics and tables.

    The frames come from the store where it is on this machine: they are what the job worked with. Elsewhere
    they come from MLflow's artifacts, which hold less: `run` is of documents, `contexts` has their texts for
    up to 1,000 topics, and no answer says what it cost. A frame that neither holds is a DataError.
    """

    def __repr__(self) -> str:
        score = self.metrics.get("ir_score")
        return f"<job {self.name}: {'' if score is None else f'IR score {score:.3f}, '}run {self.run_id}>"

    def _repr_html_(self) -> str:
        rows = None if self._table is None and self._parquet is None else self.outcomes
        return notebook.job_html(self.name, self.run_id, self.folder, self.metrics, rows)

    @cached_property
    def folder(self) -> Path | None:
        """The folder that the job wrote; None where it is not on this machine."""
        folder = self._places.folder
        try:
            record = {} if folder is None else json.loads((folder / RECORD_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            record = {}
        return folder if record.get("run_id") == self.run_id else None

    @property
    def number(self) -> int:
        """The job's number in its sweep, from 0; 0 of a single job."""
        return int(self._run.tags.get("job", 0))

    @property
    def n_tokens(self) -> int:
        """The budget of the job, in tokens."""
        return int(self._run.tags["n_tokens"])

    @cached_property
    def topics(self) -> pd.DataFrame:
        """[qid, query, answer ...]: the questions with their reference answers and attributes."""
        if (stored := self._stored("topics")) is not None:
            return stored
        rows = self._rows("topics")
        return rows.rename(columns={"answer_reference": "topic"})[["qid", "query", "topic"]].rename(
            columns={"topic": "answer"}
        )

    @cached_property
    def run(self) -> pd.DataFrame:
        """[qid, docno, score, rank]: the ranking of chunks, rank from 0."""
        if (stored := self._stored("run")) is not None:
            return stored
        lines = [line.split() for line in self._reader.text(self.run_id, _RUN).splitlines()]
        return pd.DataFrame(
            [(unquote(q), unquote(d), float(score), int(rank)) for q, _, d, rank, score, _ in lines],
            columns=["qid", "docno", "score", "rank"],
        )

    @cached_property
    def contexts(self) -> pd.DataFrame:
        """[qid, n_tokens, text, n_used, docnos]: what the LLM was given, cut at `n_tokens`.

        From MLflow alone docnos are the first ten.
        """
        layouts, prefixes = self._stored("layouts"), self._stored("prefixes")
        if layouts is not None and prefixes is not None:
            return contexts_at(layouts, prefixes, self.n_tokens)
        rows = self._rows("contexts")
        if "context" not in rows:
            raise self._gone("contexts")
        return pd.DataFrame(
            {
                "qid": rows["qid"],
                "n_tokens": self.n_tokens,
                "text": rows["context"],
                "n_used": rows["n_used"].astype(int),
                "docnos": rows["chunks"].str.split(),
            }
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """[qid, n_tokens, measure, value]: the IR score of every topic; of all budgets from the store."""
        if (stored := self._stored("scores")) is not None:
            return stored
        rows = self._rows("scores").dropna(subset="ir_score")
        found = rows[["qid", "ir_score"]].rename(columns={"ir_score": "value"})
        found.insert(1, "n_tokens", self.n_tokens)
        found.insert(2, "measure", self._run.tags.get("measure", "?"))
        return found.reset_index(drop=True)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """[qid, n_tokens, answer, status, error ...]: an answer per topic; missing, and why, where none came.

        From the store the tokens, seconds and cost of each, too, as they were when it was asked for.
        """
        if (stored := self._stored("answers")) is not None:
            return stored
        names = {"answer": "answer", "answer_status": "status", "answer_error": "error"}
        return self._of_outcomes("answers", names)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """[qid, n_tokens, label, status, raw ...]: the judge's class 1..5 of every answer that was judged."""
        if (stored := self._stored("verdicts")) is not None:
            return stored
        found = self._of_outcomes("verdicts", {"label": "label", "judge_status": "status", "judge_raw": "raw"})
        return found[~found["status"].isin(["not sampled"])].reset_index(drop=True)

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """One row per topic: question, reference, IR score, answer, label, answer measures, slices, cause."""
        return self._rows("outcomes") if self._parquet is None else self._parquet

    @cached_property
    def _places(self) -> whereabouts.Whereabouts:
        return whereabouts.from_tags(self._run.tags)

    @cached_property
    def _store(self) -> Store | None:
        return None if self._places.store is None else Store(self._places.store)

    def _stored(self, frame: str) -> pd.DataFrame | None:
        entry = self._places.entries.get(frame)
        return None if entry is None or self._store is None else self._store.frame_at(entry, frame)

    @cached_property
    def _parquet(self) -> pd.DataFrame | None:
        file = None if self.folder is None else self.folder / OUTCOMES_FILE
        return pd.read_parquet(file) if file is not None and file.is_file() else None

    @cached_property
    def _table(self) -> pd.DataFrame | None:
        try:
            rows = self._reader.table(self.run_id, _TABLE)
        except DataError:
            return None
        kinds = {"qid": "str", "ir_score": "float64", "label": "Int8"}
        return rows.astype({name: kind for name, kind in kinds.items() if name in rows})

    def _rows(self, frame: str) -> pd.DataFrame:
        if self._table is None:
            raise self._gone(frame)
        return self._table

    def _of_outcomes(self, frame: str, names: Mapping[str, str]) -> pd.DataFrame:
        rows = self._rows(frame) if self._parquet is None else self._parquet
        if not {*names} <= {*rows.columns}:
            raise self._gone(frame)
        found = rows[["qid", *names]].rename(columns=dict(names))
        found.insert(1, "n_tokens", self.n_tokens)
        return found

    def _gone(self, frame: str) -> DataError:
        if self.status != "FINISHED":
            why = self._run.tags.get("error", "no error was recorded")
            return DataError(f"run {self.run_id} is {self.status} and has no {frame}: {why}")
        if self._run.params.get("dataset._target_", "").endswith("Outcomes"):
            return DataError(f"run {self.run_id} is of recorded outcomes and has no {frame}: see its tables")
        return DataError(
            f"run {self.run_id}: its {frame} are in no store of this machine, and MLflow holds none; run the "
            f"job again: rerun={self.run_id}"
        )
