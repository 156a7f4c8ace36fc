"""What came of a gate in each format: read by its readers, whatever stands in names."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from lxml import etree

from ragauge.contract.errors import DataError, GateError
from ragauge.plugins.gate.formats import github, junit, markdown, text
from ragauge.plugins.gate.verdicts import Check, GateResult

NASTY = 'a<&>"b"\n::error::x\x00\x1b[31m ]]> @team #1 | 100% \ud800\ufffe'
# The structure that Jenkins' JUnit plugin and GitLab read, as the xUnit plugin's junit-10.xsd has it.
XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
 <xs:complexType name="told" mixed="true">
  <xs:attribute name="type" type="xs:string"/><xs:attribute name="message" type="xs:string"/></xs:complexType>
 <xs:element name="testcase"><xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded">
   <xs:element name="skipped" type="told"/><xs:element name="error" type="told"/>
   <xs:element name="failure" type="told"/></xs:choice>
  <xs:attribute name="name" type="xs:string" use="required"/>
  <xs:attribute name="classname" type="xs:string"/>
  <xs:attribute name="time" type="xs:decimal"/></xs:complexType></xs:element>
 <xs:element name="testsuite"><xs:complexType><xs:sequence>
   <xs:element ref="testcase" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
  <xs:attribute name="name" type="xs:string" use="required"/>
  <xs:attribute name="tests" type="xs:nonNegativeInteger" use="required"/>
  <xs:attribute name="failures" type="xs:nonNegativeInteger"/>
  <xs:attribute name="errors" type="xs:nonNegativeInteger"/>
  <xs:attribute name="skipped" type="xs:nonNegativeInteger"/>
  <xs:attribute name="time" type="xs:decimal"/></xs:complexType></xs:element>
 <xs:element name="testsuites"><xs:complexType><xs:sequence>
   <xs:element ref="testsuite" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
  <xs:attribute name="name" type="xs:string"/></xs:complexType></xs:element>
</xs:schema>"""


def check(**given: object) -> Check:
    values = {"job": "bm25", "run_id": "0" * 32, "metric": "ir_score", "kind": "min", "verdict": "pass"}
    return Check(**{**values, "bound": 0.5, "value": 0.4, **given})  # type: ignore[arg-type]


DENSE = {
    "job": "dense", "run_id": "1" * 32, "kind": "baseline", "difference": -0.01, "difference_lo": -0.05,
    "difference_hi": 0.03, "n": 1200, "bound": 0.02, "baseline": "the baseline 1234abcd",
}  # fmt: skip
LOOK = {"look": 2, "looks": 5, "look_topics": 1200, "max_topics": 3000.0, "level": 0.00123}
FAILED = "the job is FAILED: no disk"
RESULT = GateResult(
    [
        check(value=0.6),
        check(verdict="missed", kind="max", lo=0.3, hi=0.5, bound=0.2, action="investigate"),
        check(verdict="inconclusive", lo=0.3, hi=0.6, reason="2.0% of the answers have no verdict"),
        check(verdict="inconclusive", topics=1500.0, **DENSE),
        check(verdict="inconclusive", **DENSE, **LOOK),
        check(verdict="regressed", **DENSE, **LOOK),
        check(job="sim", run_id="2" * 32, metric="", kind="job", verdict="invalid", value=math.nan, reason=FAILED),
        check(job="sim", run_id="2" * 32, verdict="missed"),
    ],
    notes=["baseline of dense: bm25 (1234abcd)"],
)
# Each check of RESULT in words, failed ones first.
DIFFERS = (
    "ir_score differs by -0.0100 [-0.0500, +0.0300] from the baseline 1234abcd over 1,200 topics, tolerance 0.02: "
)
AT_LOOK = "; look 2 of 5, on 1,200 of at most 3,000 topics, one-sided level 0.0012: "
SAID = [
    ("regressed", "dense", f"{DIFFERS}regressed{AT_LOOK}no more topics are needed"),
    ("missed", "sim", "ir_score=0.4000 is below 0.5"),
    ("invalid", "sim", FAILED),
    ("missed (investigate)", "bm25", "ir_score=0.4000 [0.3000, 0.5000] is above 0.2"),
    ("inconclusive", "bm25", "ir_score=0.4000 [0.3000, 0.6000] is neither clearly below nor clearly at least 0.5: "
     "inconclusive; 2.0% of the answers have no verdict"),
    ("inconclusive", "dense", f"{DIFFERS}inconclusive; about 300 more topics would decide it, at a fifth of alpha "
     "since that is a second look"),
    ("inconclusive", "dense", f"{DIFFERS}inconclusive{AT_LOOK}more topics may decide it"),
    ("pass", "bm25", "ir_score=0.6000 is at least 0.5"),
]  # fmt: skip
COUNTED = "failed: 1 regressed, 2 missed, 1 invalid, 3 inconclusive, 1 pass"
ATTACKED = GateResult(
    [
        check(verdict="missed"),
        check(verdict="invalid", reason="this job has no value", job=NASTY, metric=f"slice/{NASTY}/f1"),
    ],
    notes=[f"baseline of bm25: {NASTY}"],
)


def test_every_format_says_the_same_failed_checks_first() -> None:
    columns = [["verdict", *(row[0] for row in SAID)], ["job", *(row[1] for row in SAID)]]
    wide = [[word.ljust(max(map(len, column))) for word in column] for column in columns]
    lines = ["  ".join(row) for row in zip(*wide, ["found", *(row[2] for row in SAID)], strict=True)]
    assert text(RESULT).splitlines() == [*lines, "", "baseline of dense: bm25 (1234abcd)", f"Gate {COUNTED}"]
    no_worse, difference = "ir\\_score no worse than the baseline by 0.02", "-0.010 [-0.050, +0.030] | 1,200"
    assert markdown(RESULT).splitlines() == [
        f"### Quality gate {COUNTED}",
        "",
        "| verdict | job | asked | value | difference from the baseline | topics |",
        "|---|---|---|---:|---:|---:|",
        f"| **regressed** | dense | {no_worse} | 0.400 | {difference} |",
        "| **missed** | sim | ir\\_score at least 0.5 | 0.400 | – | – |",
        "| **invalid** | sim | the job has finished | – | – | – |",
        "| missed (investigate) | bm25 | ir\\_score at most 0.2 | 0.400 [0.300, 0.500] | – | – |",
        "| inconclusive | bm25 | ir\\_score at least 0.5 | 0.400 [0.300, 0.600] | – | – |",
        *[f"| inconclusive | dense | {no_worse} | 0.400 | {difference} |"] * 2,
        "| pass | bm25 | ir\\_score at least 0.5 | 0.600 | – | – |",
        "",
        *("- " + re.sub(r"([_\[\]])", r"\\\1", said) for _, _, said in SAID[:-1]),
        "- baseline of dense: bm25 (1234abcd)",
        "- Differences are paired by topic, with the limits of two one-sided tests; *regressed* is worse by more than "
        "the tolerance after Holm's correction over all comparisons of the gate.",
    ]
    asked = [
        "ir_score no worse than the baseline by 0.02", "ir_score at least 0.5", "the job has finished",
        "ir_score at most 0.2", "ir_score at least 0.5", *["ir_score no worse than the baseline by 0.02"] * 2,
    ]  # fmt: skip
    assert github(RESULT).splitlines() == [
        f"::{'error' if i < 3 else 'warning'} title=gate%3A {rule}::{job}: {said.replace('%', '%25')}"
        for i, (rule, (_, job, said)) in enumerate(zip(asked, SAID[:-1], strict=True))
    ]
    found = json.loads(json.dumps(RESULT.as_json(), allow_nan=False))
    assert (found["exit_code"], found["strict"], found["notes"]) == (3, False, list(RESULT.notes))
    assert [c["fails"] for c in found["checks"]] == [False] * 5 + [True, False, True]
    assert {c["said"] for c in found["checks"]} == {said for _, _, said in SAID}
    assert (found["checks"][6]["value"], found["checks"][4]["max_topics"]) == (None, 3000)
    nowhere = GateResult([check(verdict="inconclusive", topics=math.inf, **DENSE)])
    assert f"{DIFFERS}inconclusive; no number of topics would decide it" in text(nowhere)
    last = GateResult([check(verdict="inconclusive", **DENSE, **LOOK | {"look": 5})])
    assert text(last).splitlines()[1].endswith(": the last look leaves it open")


def test_exit_codes_and_errors_follow_the_worst_check_that_blocks() -> None:
    assert ATTACKED.exit_code == 3
    assert GateResult([check(), check(verdict="invalid", reason="x")]).exit_code == 2
    assert GateResult([check(verdict="invalid", action="investigate")]).exit_code == 0
    assert GateResult([check(verdict="inconclusive")]).exit_code == 0
    assert GateResult([check(verdict="inconclusive")], strict=True).exit_code == 3
    assert GateResult([check(verdict="inconclusive", action="investigate")], strict=True).exit_code == 0
    with pytest.raises(GateError, match=r"^quality gate not met: ir_score=0.4000 is below 0.5$"):
        ATTACKED.raise_for()
    with pytest.raises(DataError, match=r"^quality gate not decided: ir_score: x$"):
        GateResult([check(verdict="invalid", reason="x")]).raise_for()


def test_junit_holds_every_check_and_fits_its_schema() -> None:
    root = ElementTree.fromstring(junit(RESULT).encode())
    found = [
        (*(suite.attrib[name] for name in ("name", "tests", "failures", "errors", "skipped")),
         [(case.attrib["classname"], *(child.tag for child in case)) for case in suite])
        for suite in root
    ]  # fmt: skip
    bm25, dense, sim = "gate.bm25", "gate.dense", "gate.sim"
    assert found == [
        ("bm25 (00000000)", "3", "0", "0", "2", [(bm25,), (bm25, "skipped"), (bm25, "skipped")]),
        ("dense (11111111)", "3", "1", "0", "2", [(dense, "skipped"), (dense, "skipped"), (dense, "failure")]),
        ("sim (22222222)", "2", "1", "1", "0", [(sim, "error"), (sim, "failure")]),
    ]
    told = [child for case in root.iter("testcase") for child in case]
    skipped = ["missed: ", *["inconclusive: "] * 3, "", "", ""]
    messages = [child.attrib["message"].removeprefix(said) for child, said in zip(told, skipped, strict=True)]
    assert sorted(messages) == sorted(said for _, _, said in SAID[:-1])
    assert [(child.attrib.get("type"), child.text) for child in told[-3:]] == [
        ("regressed", f"ir_score no worse than the baseline by 0.02; run {'1' * 32}"),
        ("invalid", f"the job has finished; run {'2' * 32}"), ("missed", f"ir_score at least 0.5; run {'2' * 32}"),
    ]  # fmt: skip
    schema = etree.XMLSchema(etree.fromstring(XSD))
    for result in (RESULT, ATTACKED):
        schema.assertValid(etree.fromstring(junit(result).encode()))
    assert 'a<&>"b"' in ElementTree.fromstring(junit(ATTACKED).encode())[1].attrib["name"]


def test_annotations_are_one_line_each_and_names_cannot_end_them() -> None:
    lines = github(ATTACKED).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"::(error|warning) title=[^:,\n]+::[^\n]+", line), line
    assert "100%25" in lines[1]
    assert "%3A%3Aerror%3A%3Ax" in lines[1].split("::")[1]
    assert not set(lines[1]) & {"\x00", "\x1b"}
    # GitHub shows ten of a kind.
    assert len(github(GateResult([check(verdict="missed")] * 10)).splitlines()) == 10
    lines = github(GateResult([check(verdict="missed")] * 25)).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error title=gate::16 more checks; the log and the summary have all"


def test_nothing_that_is_printed_beside_annotations_begins_as_one() -> None:
    named = GateResult([check(job="::add-mask::x", metric="::stop-commands::y", verdict="missed")],
                       notes=["baseline of ::add-mask::x: y"])  # fmt: skip
    assert not [line for line in text(named).splitlines() if line.lstrip().startswith("::")]


def test_markdown_is_a_table_whose_cells_are_no_markup() -> None:
    said = markdown(ATTACKED)
    rows = [line for line in said.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 7, row
    assert "&lt;&amp;&gt;" in said
    assert "@team" not in said
    assert r"\#1" in said
