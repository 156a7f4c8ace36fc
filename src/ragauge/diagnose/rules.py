"""Failures by thresholds on four answer measures, in a fixed order: the first that holds is the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.diagnose.causes import Cause


@dataclass(frozen=True)
class Rule:
    """A topic fails where the measure is below the threshold."""

    measure: str
    below: float
    cause: Cause


RULES: Sequence[Rule] = (
    Rule("context_recall", 0.3, Cause(
        "low_recall", "context recall below 0.3",
        "What the answer needs was not retrieved: ask for more hits, or search otherwise.",
        "retriever=hybrid retriever.top_k=100")),
    Rule("context_precision", 0.3, Cause(
        "low_precision", "context precision below 0.3",
        "What the answer needs stands below what it does not: rerank.",
        "reranker=cross_encoder")),
    Rule("faithfulness", 0.5, Cause(
        "unfaithful", "faithfulness below 0.5",
        "The answer says what the context does not: ask the LLM to keep to the documents, or try another.",
        "llm.prompt_with_documents=<file>")),
    Rule("answer_correctness", 0.5, Cause(
        "incorrect", "answer correctness below 0.5",
        "The answer is of the context, and not what was asked for: another prompt or model.",
        "llm=<another>")),
)  # fmt: skip
RULE_CAUSES: Mapping[str, Cause] = {rule.cause.name: rule.cause for rule in RULES}


def check_rules(measures: Sequence[str]) -> None:
    """ConfigError where the measures of a job are not those that the rules look at."""
    lacking = [rule.measure for rule in RULES if rule.measure not in measures]
    if lacking:
        needed = ",".join(rule.measure for rule in RULES)
        raise ConfigError(
            f"failures=rules looks at {', '.join(lacking)}, which this job does not measure: add "
            f"answers=[{needed}], or choose failures=causes"
        )


def failures_by_rules(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The cause of every topic that breaks a rule: qid, cause, decided_by. A missing value breaks none.

    `outcomes` has a row per topic with a column for the measure of every rule; ConfigError without.
    """
    check_rules(list(outcomes.columns))
    values = {rule: outcomes[rule.measure].astype(float).to_numpy() for rule in RULES}
    broken = [values[rule] < rule.below for rule in RULES]
    found = np.select(broken, [rule.cause.name for rule in RULES], "")
    told = [np.array([f"{rule.measure} {value:.2f}" for value in values[rule]], dtype=object) for rule in RULES]
    why = np.select(broken, told, "")
    rows = pd.DataFrame({"qid": outcomes["qid"].to_numpy(), "cause": found, "decided_by": why})
    return rows[rows["cause"] != ""].astype({"cause": "str", "decided_by": "str"}).reset_index(drop=True)
