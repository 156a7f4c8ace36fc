"""The rules of a quality gate, read from a config's `gate` or a file in the same form.

A rule bounds one metric, by a number (min, max) or by a baseline (tolerance), of all topics or of a slice.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ragauge.contract.checks import (
    is_number,
    require,
    require_choice,
    require_count,
    require_flag,
    require_number,
    require_text,
)
from ragauge.contract.errors import ConfigError

Action = Literal["block", "investigate"]
By = Literal["interval", "value"]
ALPHA = 0.05  # of the tests against a baseline, one-sided
MAX_MISSING = 0.05  # share of topics without a value that a comparison with a baseline bears
PRESETS: Mapping[str, Mapping[str, float]] = {
    "guideline": {
        "faithfulness": 0.85, "answer_relevancy": 0.75, "context_recall": 0.80, "context_precision": 0.70,
    },
}  # fmt: skip
MOST_LOOKS = 20
_SETTINGS = (
    "baseline", "baseline_tag", "alpha", "strict", "max_missing_share", "look", "max_topics", "series", "preset",
    "rules",
)  # fmt: skip
_OF_RULES = ("min", "max", "tolerance", "action", "slice", "by")


@dataclass(frozen=True)
class Rule:
    """The bounds of one metric.

    minimum, maximum: bounds of its value. by: `interval`, where a bound inside of the metric's interval is
    inconclusive, or `value`, which looks at the value alone. tolerance: how much worse than in the baseline
    its mean over the same topics may be. slice: (attribute, value), (attribute, None) for each of its slices,
    None for all topics. action: `investigate` is reported and changes no exit code. where: the name of the rule in
    errors.
    """

    metric: str
    minimum: float | None = None
    maximum: float | None = None
    tolerance: float | None = None
    action: Action = "block"
    slice: tuple[str, str | None] | None = None
    by: By = "interval"
    where: str = ""


@dataclass(frozen=True)
class Look:
    """A look taken at growing topics, `number` of at most `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"look {self.number} of {self.of}"


@dataclass(frozen=True)
class Gate:
    """The rules, and how to decide those with a tolerance.

    baseline: MLflow run id (or its beginning) of a job or a sweep, or the folder of one; baseline_tag: the
    newest run that has the tag, `name` or `name=value`. strict: inconclusive fails, too. alpha: how often
    at most a gate finds a regression where there is none. max_missing_share: the largest share of topics that a
    comparison may lack.
    look: the number of this look at a growing number of topics, at most max_topics of them (None: from equal steps
        between the looks). series: distinguishes looks of the same names, such as those of two pull requests.
    """

    rules: tuple[Rule, ...]
    baseline: str | None = None
    baseline_tag: str | None = None
    strict: bool = False
    alpha: float = ALPHA
    max_missing_share: float = MAX_MISSING
    look: Look | None = None
    max_topics: int | None = None
    series: str = ""

    @property
    def compares(self) -> bool:
        """Whether a rule needs a baseline."""
        return any(rule.tolerance is not None for rule in self.rules)

    def against(self, baseline: str | None, tag: str | None) -> Gate:
        """The gate with another baseline, if one is given."""
        return self if baseline is tag is None else replace(self, baseline=baseline, baseline_tag=tag)

    def at_look(self, given: Mapping[str, Any], where: str) -> Gate:
        """The gate with the given `look`, `max_topics` and `series`; ConfigError for a bad value."""
        found = {key: value for key in ("look", "max_topics", "series") if (value := given.get(key)) is not None}
        names = {key: where + (key.replace("_", "-") if where == "--" else key) for key in found}
        if "look" in found:
            found["look"] = _look(names["look"], found["look"])
        if "max_topics" in found:
            require_count(names["max_topics"], found["max_topics"], 2)
        if "series" in found:
            require_text(names["series"], found["series"], "a text (in quotes, if all digits)")
        return replace(self, **found)


def read_gate(given: Any, where: str = "gate.") -> Gate:
    """The gate of a mapping; ConfigError for a bad one.

    The mapping is {metric: minimum} or {metric: {min, max, tolerance, action, slice, by}}, a list `rules` of mappings
    that name their `metric`, and the settings of `Gate`. `preset` is a name of PRESETS; another rule for the same
    metric replaces its rule. `where` goes before every key in a message.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where.rstrip('. :')}: {_short(given)}: allowed is a mapping {{metric: minimum}}")
    rules = [*_by_metric(given, where), *_listed(given.get("rules"), where)]
    twice: dict[Hashable, Rule] = {}
    for rule in rules:
        if twice.setdefault((rule.metric, rule.slice), rule) is not rule:
            raise ConfigError(f"{rule.where}: the metric is there twice; one rule holds min, max and tolerance")
    rules += _of_preset(given.get("preset"), {rule.metric for rule in rules}, where)
    settings: dict[str, Any] = {}
    for key in ("baseline", "baseline_tag"):
        if (value := given.get(key)) is not None:
            if not isinstance(value, str) or not value.strip():
                raise ConfigError(f"{where}{key}={_short(value)}: allowed is a text (in quotes, if all digits)")
            settings[key] = value.strip()
    if len(settings) == 2:
        raise ConfigError(f"{where}baseline and {where}baseline_tag: one of them says what the baseline is")
    if "strict" in given:
        require_flag(f"{where}strict", given["strict"])
        settings["strict"] = given["strict"]
    if "alpha" in given:
        require_number(f"{where}alpha", given["alpha"], 0.0001, 0.5)
        settings["alpha"] = float(given["alpha"])
    if "max_missing_share" in given:
        require_number(f"{where}max_missing_share", given["max_missing_share"], 0, 1)
        settings["max_missing_share"] = float(given["max_missing_share"])
    gate = Gate(tuple(rules), **settings).at_look(given, where)
    if (settings or gate.look) and not rules:
        raise ConfigError(f"{where.rstrip('. :')}: no rule, such as {where}ir_score=0.6 or tolerance of a metric")
    return gate


def read_gate_file(path: Path) -> Gate:
    """The gate in a YAML file; ConfigError, naming file and key, if it cannot be read."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a duplicate key, where YAML would take the last."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(f"{path}: the key {key!r} is no text; put it in quotes")
            if key in found:
                raise ConfigError(f"{path}: {key!r} is there twice")
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    if not given:
        raise ConfigError(f"{path} holds no rules; a line such as `ir_score: 0.6` is one")
    return read_gate(given, f"{path}: ")


def _by_metric(given: Mapping[Any, Any], where: str) -> Iterator[Rule]:
    for metric, value in given.items():
        if metric in _SETTINGS:
            continue
        if not isinstance(metric, str) or not metric.strip():
            raise ConfigError(f"{where}{metric!r}: allowed are names of metrics")
        yield _rule(metric, value, f"{where}{metric}")


def _listed(given: Any, where: str) -> Iterator[Rule]:
    if given is None:
        return
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError(f"{where}rules={_short(given)}: allowed is a list of rules, each with its metric")
    for number, entry in enumerate(given, 1):
        place = f"{where}rules, rule {number}"
        if not isinstance(entry, Mapping) or not isinstance(metric := entry.get("metric"), str):
            raise ConfigError(f"{place}: {_short(entry)}: allowed is a mapping that names its metric")
        rest = {key: value for key, value in entry.items() if key != "metric"}
        yield _rule(metric, rest, f"{place} ({metric})")


def _rule(metric: str, value: Any, where: str) -> Rule:
    if is_number(value):
        return Rule(metric, minimum=float(value), where=where)
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where}={_short(value)}: allowed are a number, the minimum, and a mapping of {', '.join(_OF_RULES)}"
        )
    unknown = [key for key in value if key not in _OF_RULES]
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; allowed are {', '.join(_OF_RULES)}")
    bounds = {key: value[key] for key in ("min", "max", "tolerance") if value.get(key) is not None}
    for key, bound in bounds.items():
        if not is_number(bound) or (key == "tolerance" and bound < 0):
            allowed = "numbers from 0" if key == "tolerance" else "numbers"
            raise ConfigError(f"{where}: {key}={_short(bound)}: allowed are {allowed}")
    if not bounds:
        raise ConfigError(f"{where}: a rule has min, max or tolerance")
    if "min" in bounds and "max" in bounds and bounds["min"] > bounds["max"]:
        raise ConfigError(f"{where}: min={bounds['min']:g} is above max={bounds['max']:g}")
    action = value.get("action", "block")
    require_choice(f"{where}: action", action, get_args(Action))
    by = value.get("by", "interval")
    require_choice(f"{where}: by", by, get_args(By))
    low, high, tolerance = (bounds.get(key) for key in ("min", "max", "tolerance"))
    return Rule(
        metric,
        minimum=None if low is None else float(low),
        maximum=None if high is None else float(high),
        tolerance=None if tolerance is None else float(tolerance),
        action=action,
        slice=_slice(value.get("slice"), where),
        by=by,
        where=where,
    )


def _slice(given: Any, where: str) -> tuple[str, str | None] | None:
    if given is None:
        return None
    if isinstance(given, str) and given.strip():
        return given.strip(), None
    if isinstance(given, Mapping) and len(given) == 1:
        ((by, label),) = given.items()
        if isinstance(by, str) and by.strip() and (isinstance(label, str) or is_number(label)):
            return by.strip(), str(label)
    raise ConfigError(
        f"{where}: slice={_short(given)}: allowed are {{attribute: value}}, and an attribute for each of its slices"
    )


def _of_preset(name: Any, own: set[str], where: str) -> Iterator[Rule]:
    if name is None:
        return
    require_choice(f"{where}preset", name, PRESETS)
    for metric, minimum in PRESETS[name].items():
        if metric not in own:
            yield Rule(metric, minimum=minimum, where=f"{where}preset={name}: {metric}")


def _look(key: str, given: Any) -> Look:
    """The look `2/5` or `2 of 5`, parsed."""
    found = re.fullmatch(r"\s*(\d{1,4})\s*(?:/|of)\s*(\d{1,4})\s*", given) if isinstance(given, str) else None
    number, of = map(int, found.groups()) if found else (0, 0)
    require(key, given, 1 <= number <= of <= MOST_LOOKS, f"looks such as 2/5, from 1/1 to {MOST_LOOKS}/{MOST_LOOKS}")
    return Look(number, of)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
