"""The four abilities of a sweep whose retriever makes the conditions in which they are measured."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from ragauge.estimate.robustness import Abilities, abilities
from ragauge.experiment.sweep.contrasts import settings_of
from ragauge.experiment.sweep.jobs import Sweep, systems_of

_KEY = "retriever.condition"
_NOT_IN_METRICS = re.compile(r"[^\w.\- ]+")


def abilities_of(sweep: Sweep) -> Abilities | None:
    """The abilities at the common n_tokens; None where no job has a condition (`retriever=robustness`).

    A system is what the sweep varies but for the condition.
    """
    named = list(zip(systems_of(sweep.records), sweep.records, strict=True))
    own = [(name, record) for name, record in named if "condition" in record]
    if not own:
        return None
    records = [record for _, record in own]
    settings = settings_of(records)
    arms = [_arm(settings[system]) for system in systems_of(records)]
    at_n = sweep.outcomes[sweep.outcomes["n_tokens"] == sweep.n_tokens]
    parts = [
        at_n[at_n["system"] == name].assign(system=arm, condition=record["condition"])
        for arm, (name, record) in zip(arms, own, strict=True)
        if record["n_tokens"] == sweep.n_tokens
    ]
    rows = pd.concat([part.astype({"condition": object}) for part in parts], ignore_index=True)
    return abilities(rows)


def _arm(settings: Mapping[str, str]) -> str:
    others = {key: option for key, option in settings.items() if key != _KEY}
    return " · ".join(o if "." not in key else f"{key}={o}" for key, o in others.items()) or "all"


def metrics_of(found: Abilities | None) -> dict[str, float]:
    """The headlines; of several systems each under a name that ends with the system's."""
    if found is None:
        return {}
    systems = found.systems
    if len(systems) == 1:
        return found.metrics(systems[0])
    return {
        f"{metric}/{_NOT_IN_METRICS.sub('_', system)}": value
        for system in systems
        for metric, value in found.metrics(system).items()
    }
