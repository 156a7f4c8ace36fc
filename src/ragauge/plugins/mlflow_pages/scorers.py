"""Scorers for `mlflow.genai.evaluate`, which measure an app without a job."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.commands.conf import conf_folder, explain, quoted, search_path
from ragauge.contract.answer_measures import besides_rankings, infos_of
from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.fields import BadRow, listed_or_none, string
from ragauge.datasets.files import json_rows, parsed
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.setup import config
from ragauge.plugins.mlflow_pages.topics import Feedback, feedback_of, missed_parts, usage_of
from ragauge.plugins.mlflow_pages.writing import judge_call
from ragauge.plugins.traces.rows import Reading, Truth, expectations_on, row_of, truth_columns
from ragauge.plugins.traces.shapes import answer_of, question_of
from ragauge.store import default_ledger
from ragauge.track import CLASS

if TYPE_CHECKING:
    from mlflow.entities import Trace
    from mlflow.genai.scorers import Scorer
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

_OF_JUDGE = (CLASS, "correct")
_SCORE, _EVIDENCE = "ir_score", "reference_contexts"
_CONTEXTS = ("contexts", "retrieved_contexts")  # where an app's output names its passages


def scorers(
    *names: str, judge: str = "none", overrides: Sequence[str] = (), evidence: str | Path | None = None
) -> list[Scorer]:
    """Scorers for `mlflow.genai.evaluate` with the values of a job with `experiment=recorded`.

    names: `ir_score`, `judge_class` (1 to 5), `correct`, and options of `answers`, such as `f1`. judge: the judge's
    option, such as "lexical" or "openai". overrides: as of a job, such as "n_tokens=1000" or "judge.chat.model=m".

    A row's question and answer are MLflow's inputs and outputs, its passages the trace's RETRIEVER spans, or the key
    `contexts` of the outputs. Its truth is MLflow's expectations: `expected_response`, `expected_facts`,
    `expected_retrieved_context`. A row without evidence has no IR score. Judge calls are in the ledger, as a job's are.

    evidence: the file of topics that `ragauge annotate` wrote, or another of `dataset=jsonl`. A row without evidence of
    its own has that of its question there.

    Raises ConfigError for a name, option, override or file that is not known, DataError for a line of the file that
    cannot be read. An error in a row is on that row's assessment.
    """
    if not names:
        raise ConfigError(f"scorers(): no name; allowed are {', '.join((_SCORE, *_OF_JUDGE))} and options of answers")
    if judge == "none" and set(_OF_JUDGE) & set(names):
        raise ConfigError(f"scorers({names[0]!r}, ...): judge_class and correct need a judge, such as judge='lexical'")
    measures = [name for name in names if name not in (_SCORE, *_OF_JUDGE)]
    made = {} if evidence is None else evidence_in(evidence)
    measurer = _Measurer([f"answers=[{','.join(measures)}]", f"judge={judge}", *overrides], made)
    return [_scorer(name, measurer) for name in dict.fromkeys(names)]


def _scorer(name: str, measurer: _Measurer) -> Scorer:
    from mlflow.entities import AssessmentSource
    from mlflow.entities import Feedback as Logged
    from mlflow.genai.scorers import scorer

    @scorer(name=name)  # type: ignore[untyped-decorator]
    def measured(inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> list[Any]:
        row = measurer.row(inputs, outputs, expectations, trace)
        found = measurer.feedback(row)
        if name == _SCORE and measurer.made and row["user_input"] not in measurer.made and _EVIDENCE not in row:
            raise DataError(f"the row has no evidence, nor has the file of evidence its question {row['user_input']!r}")
        if name == _SCORE and _SCORE not in found and row.get(_EVIDENCE):
            raise DataError("the row has no passages: no span of the type RETRIEVER, no key contexts in the outputs")
        by_llm = name in _OF_JUDGE and measurer.asks
        source = AssessmentSource("LLM_JUDGE" if by_llm else "CODE", measurer.judge if name in _OF_JUDGE else "ragauge")
        return [
            Logged(name=key, value=told.value, rationale=told.rationale, source=source, metadata=judge_call(told))
            for key in measurer.values_of(name)
            if (told := found.get(key)) is not None
        ]

    return measured  # type: ignore[no-any-return]


class _Measurer:
    """Measures row after row, each once for all scorers, by the pipeline of a one-topic job."""

    def __init__(self, overrides: Sequence[str], made: Mapping[str, Sequence[str]]) -> None:
        self.made = made
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, Feedback]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="ragauge-scorers-")
        self._samples = Path(self._folder.name) / "samples.jsonl"
        self._overrides = ("experiment=recorded", "max_missing_share=1", f"recorded.path={self._samples}", *overrides)
        self._cfg = _composed(self._overrides)
        with self._pipeline({"user_input": "?", "response": "", "retrieved_contexts": []}) as pipeline:
            components = pipeline.components
        self.judge = str(self._cfg.judge.get("name") or components.judge.component)
        self.asks = components.judge.kind == "chat"
        self._values = {key: [info.name for info in infos_of(of)] for key, of in components.answers.items()}

    def values_of(self, name: str) -> Sequence[str]:
        """The feedback names of a scorer; several if its answer measure has several values."""
        return self._values.get(name, [name])

    def row(self, inputs: Any, outputs: Any, expectations: Any, trace: Any) -> dict[str, Any]:
        """The `sample_of` these arguments, with the question's made evidence if there is no other."""
        row = sample_of(inputs, outputs, expectations, trace)
        made = self.made.get(row["user_input"])
        return {_EVIDENCE: made, **row} if made else row

    def feedback(self, row: Mapping[str, Any]) -> Mapping[str, Feedback]:
        """All values of a row by name; no IR score if its passages or evidence are unknown."""
        key = json.dumps(row, sort_keys=True)
        with self._lock:
            if key not in self._found:
                self._found[key] = self._measured(row)
            return self._found[key]

    def _measured(self, row: Mapping[str, Any]) -> dict[str, Feedback]:
        contexts = row["retrieved_contexts"]
        # White space alone is a missing answer; null would be one as well, but a file must have some answer.
        answer = " " if row["response"] is None else row["response"]
        whole = {**row, "retrieved_contexts": contexts or [], "response": answer}
        with self._pipeline(whole) as pipeline:
            [outcome] = pipeline.outcomes.to_dict("records")
            if contexts is None:
                outcome["ir_score"] = None
            scored = missed_parts(pipeline.frame("part_scores"), pipeline.frame("evidence"), pipeline.n_tokens)
            [verdict] = pipeline.verdicts.to_dict("records") or [None]
            names = [info.name for info in besides_rankings(pipeline.answer_measures)]
            return feedback_of(outcome, names, scored.get(outcome["qid"]), usage_of(verdict))

    @contextmanager
    def _pipeline(self, row: Mapping[str, Any]) -> Iterator[Pipeline]:
        """The pipeline of a job on this row alone, with a temporary store; the ledger persists."""
        from ragauge.experiment.stages.components import make_pipeline

        self._samples.write_text(json.dumps(row) + "\n", encoding="utf-8")
        with tempfile.TemporaryDirectory(dir=self._folder.name) as store:
            self._cfg.store = store
            yield make_pipeline(Request(self._cfg, JobFolder(Path(store), None, 0, {}, self._overrides)))


def sample_of(inputs: Any, outputs: Any, expectations: Any, trace: Trace | None) -> dict[str, Any]:
    """A row of a samples file from a scorer's arguments; retrieved_contexts is None if nothing names them.

    DataError where there is no question.
    """
    found = {} if trace is None else row_of(trace, Reading(), Truth())
    known = [*([expectations] if expectations else []), *([{}] if trace is None else expectations_on(trace))]
    contexts = found.get("retrieved_contexts") if found.get("rounds") else None
    if contexts is None and isinstance(outputs, Mapping):
        contexts = next((outputs[key] for key in _CONTEXTS if isinstance(outputs.get(key), list)), None)
    question = question_of(inputs) if inputs is not None else found.get("user_input")
    if question is None:
        raise DataError("the row has no question: inputs is a text, or has a key such as question, query or messages")
    truth = truth_columns(known)
    return {
        "user_input": question,
        "response": answer_of(outputs) if outputs is not None else found.get("response"),
        "retrieved_contexts": contexts,
        **{key: truth[key] for key in ("reference", "references", "reference_contexts", "unanswerable") if truth[key]},
    }


def evidence_in(file: str | Path) -> dict[str, list[str]]:
    """{question: texts of its evidence} from a JSON Lines file of topics; omits parts without a text.

    ConfigError where there is no such file, DataError for a line that is no topic.
    """
    path, found = Path(file).expanduser(), {}
    if not path.is_file():
        raise ConfigError(f"scorers(evidence={str(file)!r}): there is no such file")
    for where, line in json_rows(path):
        try:
            topic = parsed(line)
            parts = [part for part in listed_or_none(topic, "evidence") if not isinstance(part, dict) or "text" in part]
            found[string(topic, "query")] = [string(part, "text") for part in parts]
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
    return found


def _composed(overrides: Sequence[str]) -> DictConfig:
    """The configuration of a job, with the ledgers of a job in this directory. Keeps Hydra's state unchanged."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    config.register()
    hydra = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_folder().resolve()), version_base="1.3"):
            cfg = compose("config", overrides=[*quoted(overrides), *search_path()])
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error)) from None
    finally:
        GlobalHydra.instance().hydra = hydra
    config.settle(cfg)
    for part in (cfg.judge, cfg.evaluator):
        if "ledger" in part and part.ledger is None:
            part.ledger = default_ledger(Path(cfg.store).absolute())
    return cfg
