"""Sentences of README, docs, conf and src/ragauge read once: few are long or speak the idiolect that the project once had.

`python tests/docs/test_plain_sentences.py [file ...]` lists those that do.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CEILING = 804
LONGEST = 30
# Passives without an actor, people who are not there, and a clause in the place of a noun.
IDIOLECT = re.compile(
    r"\b(?:told|tells? (?:of|from|apart|how|what)|of which|nobody|somebody|whom|whoever|(?:say|said|says) of|(?:is|are) said"
    r"|amounts? to|and so (?:with|is|are|do|does|has|have)|what (?:there|it) (?:is|has)|the like|for want of|anew|for what)\b"
    r"|^(?:What|Whose|Whom|Who|Of)\b(?!.*\?)",
    re.I,
)
FUNCTION_WORDS = re.compile(r"\b(?:the|a|an|is|are|of|to|in|and|with|for|not)\b")


def masked(prose: str) -> str:
    """The prose with code, addresses and marks blanked, every other character where it was."""
    prose = re.sub(r"``.+?``|`[^`]*`", lambda m: "X" * len(m[0]), prose, flags=re.S)
    return re.sub(r"\]\([^)]*\)|[*\[\]]", lambda m: "_" * len(m[0]), prose)


def sentences(prose: str) -> Iterator[str]:
    """Sentences, and what docstrings say of `name: ...` one after another."""
    plain, start = masked(prose), 0
    for end in re.finditer(
        r"(?<!e\.g)(?<!i\.e)(?<! al)(?<! cf)[.!?][)”\"_]*\s+|\n\s*\n|$|\n(?=\s*(?:[-*]|\d+\.|[a-z_]+(?:, [a-z_]+)*:) )",
        plain,
    ):
        if prose[start : end.end()].strip():
            yield " ".join(prose[start : end.end()].split())
        start = end.end()


def is_flagged(sentence: str) -> bool:
    plain = masked(sentence)
    return len([word for word in plain.split() if re.search(r"\w", word)]) > LONGEST or bool(
        IDIOLECT.search(re.sub(r"^(?:[-*] |\w+(?:, \w+)*: )+", "", plain))
    )


def of_markdown(text: str) -> str:
    text = re.sub(r"^(```|~~~).*?^\1$|<!--.*?-->|^\$\$.*?\$\$$", "", text, flags=re.M | re.S)
    return "\n\n".join(b for b in re.split(r"\n\s*\n", text) if not re.match(r"    |\||#|!\[|:::|<|\? ", b))


def of_python(text: str) -> Iterator[str]:
    """Docstrings and messages; a gap of an f-string is one word."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node) if part is not node}
            said = "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        # Lists of words have no stops, patterns no sentences.
        is_list = len(said.split()) > 30 and not re.search(r"[.,:;] ", said)
        if id(node) not in inside and len(said.split()) >= 6 and not is_list and FUNCTION_WORDS.search(said):
            yield "\n\n".join(b for b in re.split(r"\n\s*\n", said) if not re.match(r" {8}|\s*\|", b))


def of_yaml(text: str) -> str:
    return "\n".join(re.sub(r"^[^#]*(?:# ?|$)", "", line) for line in text.splitlines())


def flagged(files: list[Path]) -> list[tuple[Path, str]]:
    read = {".md": lambda text: [of_markdown(text)], ".py": of_python, ".yaml": lambda text: [of_yaml(text)]}
    prose = [(file, part) for file in files for part in read[file.suffix](file.read_text(encoding="utf-8"))]
    return [(file, said) for file, part in prose for said in sentences(part) if is_flagged(said)]


def everything() -> list[Path]:
    source = ROOT / "src" / "ragauge"
    code = [*source.rglob("*.py"), *source.rglob("*.yaml"), *(ROOT / "conf").rglob("*.yaml")]
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(code)]


def test_sentences_are_read_once() -> None:
    assert len(flagged(everything())) <= CEILING, "python tests/docs/test_plain_sentences.py lists them"


if __name__ == "__main__":
    for file, sentence in flagged([Path(a).resolve() for a in sys.argv[1:]] or everything()):
        print(f"{file.relative_to(ROOT)}: {sentence}")
