"""A gate's result for a terminal, as Markdown for a pull request, as JUnit XML, and as GitHub annotations."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ElementTree
from functools import partial

from ragauge.contract.visible import table, visible
from ragauge.plugins.gate.verdicts import Check, GateResult

# A name or message as one line that does nothing to a terminal.
clean = partial(visible, one_line=True)
_OUTCOMES = {0: "passed", 2: "not decided", 3: "failed"}
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MAX_ANNOTATIONS = 10  # of one level that GitHub shows of a step


def text(result: GateResult) -> str:
    """The gate for a terminal: a line per check, failed ones first, and the compared runs."""
    rows = [("verdict", "job", "found")]
    rows += [(_verdict(result, c), clean(c.job), clean(c.said)) for c in _ordered(result)]
    lines = [table(rows, right=()), "", *map(clean, result.notes), f"Gate {_counted(result)}"]
    return "\n".join(lines) + "\n"


def markdown(result: GateResult) -> str:
    """The gate as Markdown, for a comment on a pull request or a job's summary."""
    lines = [f"### Quality gate {_counted(result)}", ""]
    header = ("verdict", "job", "asked", "value", "difference from the baseline", "topics")
    lines += [f"| {' | '.join(header)} |", "|---|---|---|---:|---:|---:|"]
    for check in _ordered(result):
        cells = [
            f"**{_verdict(result, check)}**" if _is_serious(result, check) else _verdict(result, check),
            _markdown(check.job),
            _markdown(check.asked),
            _interval(check.value, check.lo, check.hi, ".3f"),
            _interval(check.difference, check.difference_lo, check.difference_hi, "+.3f"),
            f"{check.n:,}" if check.n else "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    told = [c for c in _ordered(result) if c.verdict != "pass"]
    lines += [
        "",
        *(f"- {_markdown(c.said)}" for c in told),
        *(f"- {_markdown(note)}" for note in result.notes),
    ]
    if any(check.kind == "baseline" for check in result.checks):
        lines.append(
            "- Differences are paired by topic, with the limits of two one-sided tests; *regressed* is worse "
            "by more than the tolerance after Holm's correction over all comparisons of the gate."
        )
    return "\n".join(lines) + "\n"


def junit(result: GateResult) -> str:
    """The gate as JUnit XML: a suite per job, a case per check.

    A failed check is a failure, an invalid one an error. One that is only reported (to be investigated, or
    inconclusive) is skipped, with its result as the message.
    """
    root = ElementTree.Element("testsuites", name="ragauge gate")
    of_jobs: dict[tuple[str, str], list[Check]] = {}
    for check in result.checks:
        of_jobs.setdefault((check.job, check.run_id), []).append(check)
    for (job, run_id), checks in of_jobs.items():
        counts = {kind: sum(_junit(result, c) == kind for c in checks) for kind in ("failure", "error", "skipped")}
        suite = ElementTree.SubElement(
            root, "testsuite", name=_xml(f"{job} ({run_id[:8]})"), tests=str(len(checks)),
            failures=str(counts["failure"]), errors=str(counts["error"]), skipped=str(counts["skipped"]),
            time="0",
        )  # fmt: skip
        for check in checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_xml(f"gate.{job}"), name=_xml(check.asked), time="0"
            )
            kind = _junit(result, check)
            if kind == "skipped":
                ElementTree.SubElement(case, kind, message=_xml(f"{check.verdict}: {check.said}"))
            elif kind:
                told = ElementTree.SubElement(case, kind, message=_xml(check.said), type=check.verdict)
                told.text = _xml(f"{check.asked}; run {run_id}")
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def github(result: GateResult) -> str:
    """GitHub's workflow commands: an error for a failed or undecided check, a warning for a report-only one.

    At most ten of each, as many as GitHub shows of a step; then one says how many there are.
    """
    lines = []
    for level, checks in (("error", [*result.failed, *result.invalid]), ("warning", result.told)):
        shown = checks if len(checks) <= _MAX_ANNOTATIONS else checks[: _MAX_ANNOTATIONS - 1]
        for check in shown:
            title = _property(f"gate: {check.asked}")
            lines.append(f"::{level} title={title}::{_data(f'{check.job}: {check.said}')}")
        if len(shown) < len(checks):
            more = f"{len(checks) - len(shown)} more checks; the log and the summary have all"
            lines.append(f"::{level} title=gate::{more}")
    return "".join(f"{line}\n" for line in lines)


def _ordered(result: GateResult) -> list[Check]:
    """Failed checks first, then undecided, then report-only ones; otherwise in the order of jobs and rules."""
    places = ({id(c) for c in result.failed}, {id(c) for c in result.invalid}, {id(c) for c in result.told})
    return sorted(result.checks, key=lambda c: next((i for i, ids in enumerate(places) if id(c) in ids), 3))


def _is_serious(result: GateResult, check: Check) -> bool:
    return result.fails(check) or any(check is one for one in result.invalid)


def _verdict(result: GateResult, check: Check) -> str:
    return check.verdict if check.action == "block" else f"{check.verdict} (investigate)"


def _counted(result: GateResult) -> str:
    counts: dict[str, int] = {}
    for check in result.checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    order = ("regressed", "missed", "invalid", "inconclusive", "pass")
    return f"{_OUTCOMES[result.exit_code]}: " + ", ".join(f"{counts[v]} {v}" for v in order if v in counts)


def _junit(result: GateResult, check: Check) -> str:
    if result.fails(check):
        return "failure"
    if check.verdict == "pass":
        return ""
    return "error" if _is_serious(result, check) else "skipped"


def _interval(value: float, lo: float, hi: float, spec: str) -> str:
    if value != value:
        return "–"
    shown = f"{value:{spec}}"
    return shown if lo != lo or hi != hi else f"{shown} [{lo:{spec}}, {hi:{spec}}]"


def _markdown(text: str) -> str:
    """One line without markup, mentions (@) and references (#)."""
    escaped = re.sub(r"([\\`*_\[\]|~!#])", r"\\\1", html.escape(clean(text), quote=False))
    return escaped.replace("@", "@\N{ZERO WIDTH SPACE}")


def _xml(text: str) -> str:
    """One line without characters that XML forbids."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


def _data(text: str) -> str:
    """A message on one line, escaped for GitHub's commands."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
