"""Sentences of README, docs, conf and src/ragauge read once: few are long, or speak the idiolect that they once had.

`python tests/docs/test_plain_sentences.py [file ...]` lists those that do.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CEILING = 200
LONGEST = 30
# Passives without an actor, people who are not there, and a clause in the place of a noun.
IDIOLECT = re.compile(
    r"\b(?:told|tells? (?:of|from|apart|how|what)|of which|nobody|somebody|whom|whoever|(?:say|said|says) of"
    r"|(?:is|are) said|amounts? to|and so (?:with|is|are|do|does|has|have)|what (?:there|it) (?:is|has)|the like"
    r"|for want of|anew|for what)\b|^(?:What|Whose|Whom|Who|Of)\b(?!.*\?)",
    re.I,
)
ENDS = re.compile(r"(?<!e\.g)(?<! al)[.!?][)”\"_]*\s+|\n\s*\n|$|\n(?=\s*(?:[-*]|\d+\.|[a-z_]+(?:, [a-z_]+)*:) )")


# Fenced blocks, comments, and blocks that are code, tables, headings, pictures or HTML.
NO_PROSE = re.compile(r"(?ms)^```.*?^```$|<!--.*?-->|(?<=\n\n)(?:    |\||#|!\[|:::|<).*?(?=\n\n|\Z)")


def masked(prose: str) -> str:
    """The prose with code, addresses and marks blanked, every other character where it was."""
    prose = re.sub(r"``.+?``|`[^`]*`", lambda m: "X" * len(m[0]), prose, flags=re.S)
    return re.sub(r"\]\([^)]*\)|[*\[\]]", lambda m: "_" * len(m[0]), prose)


def sentences(prose: str) -> Iterator[str]:
    start = 0
    for end in ENDS.finditer(masked(prose)):
        if prose[start : end.end()].strip():
            yield " ".join(prose[start : end.end()].split())
        start = end.end()


def is_flagged(sentence: str) -> bool:
    plain = re.sub(r"^(?:[-*] |\w+(?:, \w+)*: )+", "", masked(sentence))
    return len(re.findall(r"\S*\w\S*", masked(sentence))) > LONGEST or bool(IDIOLECT.search(plain))


def of_python(text: str) -> Iterator[str]:
    """Docstrings and messages, and no lists of words; a gap of an f-string is one word."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        said = node.value if isinstance(node, ast.Constant) else ""
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node) if part is not node}
            said = "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        if isinstance(said, str) and id(node) not in inside and re.match(r"(?=.*[.,:;]\s|.{9,150}$)(\S+\s+){5}", said):
            yield said


READ = {
    ".py": of_python,
    ".md": lambda text: [NO_PROSE.sub("\n\n", text)],
    # A comment behind a key is a text of its own.
    ".yaml": lambda text: [re.sub(r"(?m)^\s*# ?", "", re.sub(r"(?m)^[^#\n]*[^#\s][^#\n]*(?:# ?|$)", "\n\n", text))],
}


def flagged(files: list[Path]) -> list[tuple[Path, str]]:
    prose = [(file, part) for file in files for part in READ[file.suffix](file.read_text(encoding="utf-8"))]
    return [(file, said) for file, part in prose for said in sentences(part) if is_flagged(said)]


def everything() -> list[Path]:
    files = (file for folder in ("docs", "src/ragauge", "conf") for file in sorted((ROOT / folder).rglob("*")))
    return [ROOT / "README.md", *(file for file in files if file.suffix in READ and "/docs/pages/" not in str(file))]


def test_sentences_are_read_once() -> None:
    assert len(flagged(everything())) <= CEILING, "python tests/docs/test_plain_sentences.py lists them"


if __name__ == "__main__":
    for file, sentence in flagged([Path(name).resolve() for name in sys.argv[1:]] or everything()):
        print(f"{file.relative_to(ROOT)}: {sentence}")
