"""The findings in their order, and their forms: a text for the terminal, JSON, CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import count_rows
from ragauge.contract.visible import sheet_text, table, visible
from ragauge.datasets.fields import BadRow
from ragauge.datasets.recordings import NAMES, entries, recorded_file
from ragauge.measures.tokens import of_language, tokens_of
from ragauge.plugins.hygiene.evidence import (
    evidence_in_several_documents,
    lost_evidence,
    references_not_in_evidence,
)
from ragauge.plugins.hygiene.found import Found, QuestionSet
from ragauge.plugins.hygiene.outliers import in_another_language, of_unusual_length
from ragauge.plugins.hygiene.repeats import (
    leaked_questions,
    questions_in_documents,
    repeated_documents,
    repeated_questions,
)
from ragauge.plugins.hygiene.unanswerable import answerable_after_all

_SHOWN = 3  # ids of a finding in the table
FINDINGS: Mapping[str, Callable[[QuestionSet], Found]] = {
    "repeated_questions": repeated_questions,
    "repeated_documents": repeated_documents,
    "questions_in_documents": questions_in_documents,
    "leaked_questions": leaked_questions,
    "evidence_in_several_documents": evidence_in_several_documents,
    "lost_evidence": lost_evidence,
    "references_not_in_evidence": references_not_in_evidence,
    "answerable_after_all": answerable_after_all,
    "questions_in_another_language": lambda of: in_another_language(of.questions()),
    "documents_in_another_language": lambda of: in_another_language(of.documents()),
    "questions_of_unusual_length": lambda of: of_unusual_length(of.questions()),
    "references_of_unusual_length": lambda of: of_unusual_length(
        (qid, one) for qid, several in of.references().items() for one in several
    ),
    "documents_of_unusual_length": lambda of: of_unusual_length(of.documents()),
}
# By name: rule and remedy.
TEXTS: Mapping[str, Mapping[str, str]] = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text("utf-8"))


def chosen(names: str | None) -> list[str]:
    """The names of `--only`, with commas between, in the order of FINDINGS; ConfigError for another."""
    given = list(FINDINGS) if names is None else [name.strip() for name in names.split(",")]
    for name in given:
        if name not in FINDINGS:
            raise ConfigError(f"--only {name}: allowed are {', '.join(FINDINGS)}")
    return [name for name in FINDINGS if name in given]


def question_set(cfg: Any, against: str | None) -> QuestionSet:
    """The dataset of a job's config, and the training questions of the file `against`.

    ConfigError for a dataset of outcomes, which has no documents and no topics.
    """
    from ragauge.experiment.stages.components import instantiate_components
    from ragauge.store import Store
    from ragauge.texts.tokenizers import WordTokenizer

    known = None if against is None else training_questions(against)
    components = instantiate_components(cfg)
    if components.dataset.run_job:
        raise ConfigError(f"dataset={components.dataset.name}: it holds outcomes, and no test set to check")
    data = components.dataset.load()
    tools = Tools(Store(Path(cfg.store)), components.embedder, WordTokenizer())
    tokens = tokens_of("language", *of_language("language", None, None, cfg.language))
    fold = tuple(components.measure.fold)
    return QuestionSet(data.docs, data.topics, data.evidence, tools, fold, tokens, known)


def training_questions(path: str) -> list[tuple[str, str]]:
    """File and row, and the question, of every row of a JSON Lines, JSON, CSV or Parquet file.

    ConfigError for no such file; DataError names a row without a question.
    """
    found = []
    for entry in entries(recorded_file("--against", path)):
        try:
            row = entry.read()
        except BadRow as bad:
            raise DataError(f"{entry.where}: {bad}") from None
        texts = [row[name] for name in NAMES["question"] if isinstance(row.get(name), str)]
        if not texts:
            raise DataError(f"{entry.where}: no question in it; allowed names are {', '.join(NAMES['question'])}")
        found.append((entry.where.replace(str(Path(path).expanduser()), Path(path).name), texts[0]))
    if not found:
        raise DataError(f"{path}: there is no row in it")
    return found


def sizes_of(of: QuestionSet) -> dict[str, int]:
    """How much there is of each."""
    return {"documents": count_rows(of.docs), "topics": len(of.topics), "pieces of evidence": len(of.evidence)}


def as_text(found: Mapping[str, Found]) -> str:
    """A table, below it the remedy of each finding with cases, and the notes."""
    rows = [("finding", "found", "of", "the first")]
    for name, one in found.items():
        first = [f"{item.id} ({', '.join(item.others)})" if item.others else item.id for item in one.items or ()]
        shown = ", ".join(first[:_SHOWN]) + (", …" if len(first) > _SHOWN else "")
        rows.append((name, "–" if one.count is None else f"{one.count:,}", f"{one.of:,}", shown))
    remedies = [f"{name}: {TEXTS[name]['remedy']}" for name, one in found.items() if one.count]
    notes = [f"{name}: {one.note}" for name, one in found.items() if one.note and (one.count or one.items is None)]
    return visible("\n\n".join("\n".join(part) for part in ([table(rows, right={1, 2})], remedies, notes) if part))


def as_json(found: Mapping[str, Found], of: QuestionSet) -> str:
    """All findings with all of their cases; a count is null where nothing could be looked at."""
    listed = [
        {
            "name": name, "count": one.count, "of": one.of, **TEXTS[name], "note": one.note,
            "cases": [item._asdict() for item in one.items or ()],
        }
        for name, one in found.items()
    ]  # fmt: skip
    return json.dumps({"checked": sizes_of(of), "findings": listed}, indent=2, ensure_ascii=False) + "\n"


def as_csv(found: Mapping[str, Found]) -> str:
    """A row for every case: finding, id, others with | between, detail."""
    rows = [
        (name, item.id, " | ".join(item.others), item.detail) for name, one in found.items() for item in one.items or ()
    ]
    return sheet_text(pd.DataFrame(rows, columns=["finding", "id", "others", "detail"], dtype="str"))
