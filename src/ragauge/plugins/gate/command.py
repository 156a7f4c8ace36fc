"""The command `ragauge gate`: checks ended runs against rules; exit code 3 if one is not met."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.output_files import add_force, refuse_foreign, write_output
from ragauge.plugins.gate.rules import PRESETS, Gate, read_gate, read_gate_file

ABOUT = "holds a job or a sweep to quality rules; exit code 3 where one is not met"
_STDOUT = "-"
# What each file begins with, by which one that is there is known as ragauge's.
_MARKS = {"junit": '<testsuites name="ragauge gate"', "markdown": "### Quality gate ", "json": '{\n  "exit_code": '}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge gate",
        description="Holds a job, or the jobs of a sweep, to quality rules. Exit code 3: a rule that blocks "
        "is not met; 2: one could not be decided, or an error; 0 else.",
    )
    parser.add_argument("source", help="MLflow run id (or its beginning) of a job or sweep, or a folder")
    parser.add_argument(
        "rule",
        nargs="*",
        metavar="RULE",
        help="metric=minimum, or 'metric={min: 0.6, max: 0.9, tolerance: 0.02, action: investigate}'",
    )
    parser.add_argument("--rules", type=Path, metavar="FILE", help="a YAML file of rules (docs/ci.md)")
    parser.add_argument("--preset", choices=sorted(PRESETS), help="common rules")
    parser.add_argument("--baseline", help="run id or folder of the job or sweep that tolerances refer to")
    parser.add_argument("--baseline-tag", metavar="TAG", help="the newest run with it: name, or name=value")
    parser.add_argument("--strict", action="store_true", help="inconclusive checks fail, too")
    parser.add_argument("--look", metavar="K/M", help="this is look K of at most M at growing topics (or: K of M)")
    parser.add_argument("--max-topics", type=int, metavar="N", help="the largest number of topics of all looks")
    parser.add_argument("--series", help="distinguishes looks of the same names, such as those of two pull requests")
    parser.add_argument("--system", help="in a sweep: the jobs of this system alone")
    parser.add_argument("--n-tokens", type=int, help="in a sweep: the jobs of this budget alone")
    parser.add_argument("--pooled", action="store_true", help="in a sweep: the metrics of its own run")
    parser.add_argument("--junit", metavar="FILE", help="JUnit XML; - is standard output")
    parser.add_argument("--markdown", metavar="FILE", help="a summary for a pull request; - is standard output")
    parser.add_argument("--json", metavar="FILE", help="everything, as JSON; - is standard output")
    add_force(parser)
    parser.add_argument("--github", action="store_true", help="annotations for GitHub's pull requests")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_intermixed_args(_looks_joined(sys.argv[1:] if arguments is None else arguments))
    files = {name: getattr(given, name) for name in ("junit", "markdown", "json")}
    to_stdout = [name for name, file in files.items() if file == _STDOUT]
    if len(to_stdout) + bool(given.github and to_stdout) > 1:
        raise ConfigError(
            f"--{' and --'.join([*to_stdout, *(['github'] if given.github else [])])}: one format goes to "
            "standard output"
        )
    for name, file in files.items():
        if file and file != _STDOUT:
            refuse_foreign(Path(file), _MARKS[name], given.force)
    gate = _gate(given)
    # After the arguments: they import for seconds, and the help of ragauge reads ABOUT alone.
    from ragauge.plugins.gate import formats
    from ragauge.plugins.gate.ended import Asked, gate_runs

    asked = Asked(given.source, gate, given.system, given.n_tokens, given.pooled)
    result = gate_runs(asked, given.tracking_uri)
    made: dict[str, Callable[[], str]] = {
        "junit": lambda: formats.junit(result),
        "markdown": lambda: formats.markdown(result),
        "json": lambda: json.dumps(result.as_json(), indent=2, ensure_ascii=True, allow_nan=False) + "\n",
    }
    for name, file in files.items():
        if file and file != _STDOUT:
            _write(Path(file), made[name]())
    sys.stdout.write(made[to_stdout[0]]() if to_stdout else formats.text(result))
    if given.github:
        sys.stdout.write(formats.github(result))
    return result.exit_code


def _gate(given: argparse.Namespace) -> Gate | None:
    """The gate of the arguments; None without rules, so that the runs' own configs apply."""
    parts = []
    if given.rules is not None:
        parts.append(read_gate_file(given.rules))
    if given.rule:
        parts.append(read_gate(dict(map(_rule, given.rule)), ""))
    if given.preset is not None:
        own = {rule.metric for part in parts for rule in part.rules}
        preset = read_gate({"preset": given.preset}, "--")
        parts.append(replace(preset, rules=tuple(r for r in preset.rules if r.metric not in own)))
    if not parts:
        if given.baseline or given.baseline_tag or given.strict or given.look:
            raise ConfigError("--baseline, --baseline-tag, --strict, --look: they are of rules given here; give some")
        return None
    rules = tuple(rule for part in parts for rule in part.rules)
    named = [(rule.metric, rule.slice) for rule in rules]
    for rule in rules:
        if named.count((rule.metric, rule.slice)) > 1:
            raise ConfigError(f"{rule.metric}: there are two rules for it, in the file and beside it")
    if given.baseline and given.baseline_tag:
        raise ConfigError("--baseline and --baseline-tag: one of them says what the baseline is")
    gate = replace(parts[0], rules=rules, strict=parts[0].strict or given.strict)
    return gate.against(given.baseline, given.baseline_tag).at_look(vars(given), "--")


def _looks_joined(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `--look 2 of 5` joined into one."""
    words = list(arguments)
    at = words.index("--look") + 1 if "--look" in words else len(words)
    return [*words[:at], " ".join(words[at : at + 3]), *words[at + 3 :]] if words[at + 1 : at + 2] == ["of"] else words


def _rule(text: str) -> tuple[str, Any]:
    import yaml

    metric, equals, value = text.partition("=")
    if not equals or not metric.strip():
        raise ConfigError(f"{text!r}: allowed are rules such as ir_score=0.6")
    try:
        return metric.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} cannot be read: {' '.join(str(error).split())}") from error


def _write(file: Path, content: str) -> None:
    write_output(file, content)
    print(f"wrote {file}", file=sys.stderr)
