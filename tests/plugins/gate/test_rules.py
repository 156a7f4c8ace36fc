"""The rules of a gate: what may be written, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.gate.checking import Gated, evaluate
from ragauge.plugins.gate.rules import PRESETS, Rule, read_gate, read_gate_file


def test_a_number_is_a_minimum_and_a_mapping_has_the_rest() -> None:
    gate = read_gate(
        {
            "ir_score": 0.6,
            "f1": {"min": 0.5, "max": 0.9, "tolerance": 0, "action": "investigate"},
            "rules": [
                {"metric": "f1", "tolerance": 0.02, "slice": {"hops": 2}},
                {"metric": "f1", "min": 0, "slice": "type"},
            ],
            "baseline": " abc ",
            "strict": True,
            "alpha": 0.01,
        }
    )
    first, second, third, fourth = gate.rules
    assert first == Rule("ir_score", minimum=0.6, where="gate.ir_score")
    assert (second.minimum, second.maximum, second.tolerance, second.action) == (0.5, 0.9, 0.0, "investigate")
    assert (third.slice, third.tolerance, third.minimum) == (("hops", "2"), 0.02, None)
    assert fourth.slice == ("type", None)
    assert (gate.baseline, gate.strict, gate.alpha, gate.compares) == ("abc", True, 0.01, True)
    assert read_gate({}).rules == ()
    assert gate.against(None, "release").baseline is None


def test_a_rule_of_ones_own_takes_the_place_of_the_presets() -> None:
    gate = read_gate({"preset": "guideline", "faithfulness": 0.9})
    assert {rule.metric: rule.minimum for rule in gate.rules} == PRESETS["guideline"] | {"faithfulness": 0.9}
    assert PRESETS["guideline"] == {
        "faithfulness": 0.85, "answer_relevancy": 0.75, "context_recall": 0.80, "context_precision": 0.70,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ir_score": "0.6"}, "gate.ir_score='0.6': allowed are a number"),
        ({"ir_score": float("nan")}, "gate.ir_score=nan: allowed are a number"),
        ({"ir_score": {}}, "gate.ir_score: a rule has min, max or tolerance"),
        ({"ir_score": {"min": "x"}}, "gate.ir_score: min='x': allowed are numbers"),
        ({"ir_score": {"tolerance": -0.02}}, "tolerance=-0.02: allowed are numbers from 0"),
        ({"ir_score": {"minimum": 1}}, "unknown key 'minimum'; allowed are min, max, tolerance"),
        ({"ir_score": {"min": 0.9, "max": 0.1}}, "min=0.9 is above max=0.1"),
        ({"ir_score": {"min": 0, "action": "warn"}}, "action='warn': allowed are block, investigate"),
        ({"ir_score": {"min": 0, "slice": 3}}, "slice=3: allowed are {attribute: value}"),
        ({"ir_score": {"min": 0, "slice": {"a": 1, "b": 2}}}, "allowed are {attribute: value}"),
        ({"rules": {"metric": "f1"}}, "gate.rules={'metric': 'f1'}: allowed is a list of rules"),
        ({"rules": ["f1"]}, "gate.rules, rule 1: 'f1': allowed is a mapping that names its metric"),
        ({"f1": 1, "rules": [{"metric": "f1", "max": 1}]}, "rule 1 (f1): the metric is there twice"),
        ({"f1": 1, "baseline": 12}, "gate.baseline=12: allowed is a text"),
        ({"f1": 1, "baseline": "a", "baseline_tag": "b"}, "one of them says what the baseline is"),
        ({"baseline": "a"}, "gate: no rule"),
        ({"f1": 1, "strict": "yes"}, "gate.strict='yes': allowed are true, false"),
        ({"f1": 1, "alpha": 5}, "gate.alpha=5: allowed are numbers from 0.0001 to 0.5"),
        ({"f1": 1, "max_missing_share": 2}, "gate.max_missing_share=2: allowed are numbers from 0 to 1"),
        ({"preset": "gold"}, "gate.preset='gold': allowed are guideline"),
        ({3: 0.5}, "gate.3: allowed are names of metrics"),
        ([0.6], "gate: [0.6]: allowed is a mapping"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_gate(given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ir_score: 0.6\nir_score: 0.1\n", "'ir_score' is there twice"),
        ("f1: {min: 0.1, on: block}\n", "the key True is no text"),
        ("f1: [\n", "is no YAML"),
        ("", "holds no rules"),
        ("f1: !!python/object/apply:os.system ['true']\n", "is no YAML"),
        ("f1: {tolerance: -1}\n", "f1: tolerance=-1: allowed are numbers from 0"),
    ],
)
def test_a_gate_file_that_cannot_be_read_is_named_with_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_gate_file(file)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_a_gate_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: No such file"):
        read_gate_file(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes.yaml cannot be read"):
        read_gate_file(tmp_path / "bytes.yaml")
    (tmp_path / "deep.yaml").write_text("f1: " + "[" * 5000, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"deep.yaml is no YAML"):
        read_gate_file(tmp_path / "deep.yaml")


@pytest.mark.parametrize("strict", [True, False])
def test_a_result_is_as_strict_as_its_gate(strict: bool) -> None:
    result = evaluate(read_gate({"f1": 0.5, "strict": strict}), [Gated("bm25", "0" * 32, {"f1": 0.7})])
    assert (result.strict, result.as_json()["strict"]) == (strict, strict)


def test_a_share_of_verdicts_that_nobody_gave_is_not_decided_rather_than_missed() -> None:
    gate = read_gate({"correct_share": 0.1, "ir_score": 0.5})

    def checked(missing: float) -> list[tuple[str, str]]:
        metrics = {"correct_share": 0.0, "judge_share_missing": missing, "ir_score": 0.7}
        return [(c.verdict, c.reason) for c in evaluate(gate, [Gated("bm25", "0" * 32, metrics)]).checks]

    assert checked(1.0) == [("invalid", "no answer has a verdict"), ("pass", "")]
    assert checked(0.9) == [("missed", "90.0% of the answers have no verdict"), ("pass", "")]


def test_a_maximum_passes_only_where_missing_verdicts_cannot_break_it() -> None:
    gate = read_gate({"hallucination_share": {"max": 0.1}})

    def verdict(share: float, missing: float) -> str:
        metrics = {"hallucination_share": share, "judge_share_missing": missing}
        for end, apart in (("lo", -0.02), ("hi", 0.02)):
            metrics[f"hallucination_share_{end}"] = max(share + apart, 0.0)
        return evaluate(gate, [Gated("bm25", "0" * 32, metrics)]).checks[0].verdict

    assert [verdict(0.0, 0.8), verdict(0.05, 0.02), verdict(0.05, 0.04), verdict(0.2, 0.5)] == [
        "inconclusive", "pass", "inconclusive", "missed",
    ]  # fmt: skip
