"""Claims of docs/method.md: their rows in benchmarks/VALIDITY.md, their sources, and the code that they name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT, _, SOURCES = (ROOT / "docs" / "method.md").read_text(encoding="utf-8").partition("\n## Sources\n")
ROWS = re.findall(r"^\| (.+?) \|", (ROOT / "benchmarks" / "VALIDITY.md").read_text(encoding="utf-8"), re.M)
NAMED = re.findall(r"“([^“”]+)”", " ".join(re.findall(r"VALIDITY: ([^()]*(?:\([^()]*\)[^()]*)*)", TEXT)))
# A figure that a simulation gave: a range of per cents, or of what is said to hold, cover or pass.
_FIGURE = re.compile(r"\d+ (?:to|and) \d+ %|(?:hold|cover|reject|break|pass)[a-z]* [^.;]{0,60}?\d %")


def test_every_claim_of_a_simulation_names_a_row_of_the_table() -> None:
    assert len(NAMED) > 40
    folded = [" ".join(name.split()) for name in NAMED]
    assert [name for name in folded if not any(row.startswith(name) for row in ROWS)] == []
    blocks = re.split(r"\n\s*\n|\n(?=- |\| )", TEXT)
    claims = [block for block in blocks if _FIGURE.search(block) and not block.startswith("|")]
    assert len(claims) > 15
    bare = [block[:90] for block in claims if "VALIDITY: " not in block]
    # What is asked for, not what was found: 95 % of a zone's promise, and how gates test.
    assert [block for block in bare if not block.startswith(("Right zone", "How to set one up"))] == []


def test_every_source_has_a_number_a_year_and_a_title_and_is_used() -> None:
    entries = re.findall(r"^(\d+)\. (.+(?:\n    .+)*)", SOURCES, re.M)
    assert [int(number) for number, _ in entries] == list(range(1, len(entries) + 1))
    untitled = [entry for _, entry in entries if not re.search(r"\b(19|20)\d\d, .{10}", entry)]
    assert untitled == []
    cited = {int(n) for group in re.findall(r"\[(\d+(?:, \d+)*)\]", TEXT) for n in group.split(", ")} - {0}
    assert cited == set(range(1, len(entries) + 1))
    # Names with a year stand among the sources alone.
    assert re.findall(r"[A-Z][a-zé]+(?: (?:&|and) [A-Z][a-z]+| et al\.)? (?:19|20)\d\d", TEXT) == []


def test_the_code_that_is_named_is_there() -> None:
    named = re.findall(r"^\*Code: (.+)\*$", TEXT, re.M)
    paths = [path for line in named for path in line.split(", ")]
    assert len(paths) > 15
    source = ROOT / "src" / "ragauge"
    gone = [path for path in paths if not (source / path).exists()]
    # A plug-in may be gone as a whole.
    assert [p for p in gone if not p.startswith("plugins/") or (source / "plugins" / p.split("/")[1]).exists()] == []
