"""What came of a gate in each format: read by its readers, whatever stands in names."""

from __future__ import annotations

import json
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


RESULT = GateResult(
    [
        check(),
        check(verdict="missed"),
        check(verdict="missed", action="investigate"),
        check(kind="baseline", verdict="inconclusive", difference=-0.01, difference_lo=-0.05,
              difference_hi=0.03, n=120, topics=150.0, bound=0.02, baseline="the baseline 1234abcd"),
        check(verdict="invalid", reason="this job has no value", value=float("nan"), job=NASTY,
              metric=f"slice/{NASTY}/f1"),
    ],
    notes=[f"baseline of bm25: {NASTY}"],
)  # fmt: skip


def test_exit_codes_and_errors_follow_the_worst_check_that_blocks() -> None:
    assert RESULT.exit_code == 3
    assert GateResult([check(), check(verdict="invalid", reason="x")]).exit_code == 2
    assert GateResult([check(verdict="invalid", action="investigate")]).exit_code == 0
    assert GateResult([check(verdict="inconclusive")]).exit_code == 0
    assert GateResult([check(verdict="inconclusive")], strict=True).exit_code == 3
    assert GateResult([check(verdict="inconclusive", action="investigate")], strict=True).exit_code == 0
    with pytest.raises(GateError, match=r"^quality gate not met: ir_score=0.4000 is below 0.5$"):
        RESULT.raise_for()
    with pytest.raises(DataError, match=r"^quality gate not decided: ir_score: x$"):
        GateResult([check(verdict="invalid", reason="x")]).raise_for()


def test_junit_holds_every_check_and_fits_its_schema() -> None:
    text = junit(RESULT)
    root = ElementTree.fromstring(text.encode())
    cases = root.findall("testsuite/testcase")
    assert len(cases) == 5
    assert [[child.tag for child in case] for case in cases] == [
        [],
        ["failure"],
        ["skipped"],
        ["skipped"],
        ["error"],
    ]
    for case in cases[2:4]:  # of these the schema of JUnit's readers knows a message alone
        assert list(case[0].attrib) == ["message"]
        assert case[0].attrib["message"].startswith(("inconclusive: ", "missed: ", "regressed: "))
    first, second = root.findall("testsuite")
    assert (first.attrib["tests"], first.attrib["failures"], first.attrib["skipped"]) == ("4", "1", "2")
    assert second.attrib["errors"] == "1"
    assert 'a<&>"b"' in second.attrib["name"]
    schema = etree.XMLSchema(etree.fromstring(XSD))
    schema.assertValid(etree.fromstring(text.encode()))


def test_annotations_are_one_line_each_and_names_cannot_end_them() -> None:
    lines = github(RESULT).splitlines()
    assert len(lines) == 4
    for line in lines:
        assert re.fullmatch(r"::(error|warning) title=[^:,\n]+::[^\n]+", line), line
    nasty = next(line for line in lines if "no value" in line)
    assert "100%25" in nasty
    assert "%3A%3Aerror%3A%3Ax" in nasty.split("::")[1]
    assert not set(nasty) & {"\x00", "\x1b"}
    # GitHub shows ten of a kind.
    many = GateResult([check(verdict="missed")] * 25)
    lines = github(many).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error title=gate::16 more checks; the log and the summary have all"


def test_nothing_that_is_printed_beside_annotations_begins_as_one() -> None:
    named = GateResult([check(job="::add-mask::x", metric="::stop-commands::y", verdict="missed")],
                       notes=["baseline of ::add-mask::x: y"])  # fmt: skip
    assert not [line for line in text(named).splitlines() if line.lstrip().startswith("::")]


def test_markdown_is_a_table_whose_cells_are_no_markup() -> None:
    text = markdown(RESULT)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 6
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 7, row
    assert "&lt;&amp;&gt;" in text
    assert "@team" not in text
    assert r"\#1" in text
    assert "| **missed** | bm25 | ir\\_score at least 0.5 | 0.400 |" in text
    assert "-0.010 [-0.050, +0.030]" in text
    assert "about 30 more topics would decide it" in text


def test_text_and_json_say_the_same() -> None:
    said = text(RESULT)
    assert said.splitlines()[-1] == "Gate failed: 2 missed, 1 invalid, 1 inconclusive, 1 pass"
    assert said.index("is below 0.5") < said.index("this job has no value") < said.index("inconclusive")
    found = json.loads(json.dumps(RESULT.as_json(), allow_nan=False))
    assert found["exit_code"] == 3
    assert [c["fails"] for c in found["checks"]] == [False, True, False, False, False]
    assert found["checks"][4]["value"] is None
