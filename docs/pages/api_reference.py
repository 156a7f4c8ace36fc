"""Pages of the API reference: the classes and functions that configuration and guides name.

What options build comes from the `_target_` keys in conf/; what components of one's own are written with
comes from the imports in the guides' examples; modules of the contract are listed. mkdocstrings fills the
pages from the docstrings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from config_reference import Option

# Modules of ragauge.contract that are documented in whole, and the titles of their pages.
CONTRACT = {
    "component": "Components and their tools",
    "datasets": "Kinds of components: datasets",
    "retrieval": "Kinds of components: retrieval",
    "answering": "Kinds of components: answers and judges",
    "measures": "Kinds of components: measures",
    "replies": "Replies",
    "workplace": "Workplace",
    "frames": "Frames",
    "topics": "Topics",
    "identity": "Identity",
    "errors": "Errors",
}


def pages(options: Sequence[Option], docs: Path) -> dict[str, tuple[str, str]]:
    """Title and Markdown of every page, by its path in the site."""
    made = {"api/index.md": ("In Python", _front(docs.parent / "src" / "ragauge" / "__init__.py"))}
    for module, title in CONTRACT.items():
        made[f"api/{module}.md"] = (title, f"# {title}\n\n::: ragauge.contract.{module}\n{_WHOLE}")
    shown = {f"ragauge.contract.{module}" for module in CONTRACT}
    built: dict[str, dict[str, list[Option]]] = {}
    for option in options:
        if option.target and option.folder and option.target.rpartition(".")[0] not in shown:
            group = option.folder.partition("/")[0]
            built.setdefault(group, {}).setdefault(option.target, []).append(option)
    for group, targets in sorted(built.items()):
        made[f"api/{group}.md"] = (group, _components(group, targets))
    known = {target for targets in built.values() for target in targets}
    made["api/helpers.md"] = ("For components of one's own", _helpers(docs, known))
    return made


# Of a module every public name under a heading of its own.
_WHOLE = "    options: {show_root_heading: false, show_root_toc_entry: false, heading_level: 2}\n"


def _front(package: Path) -> str:
    """The functions of the package itself, and the classes of what they return."""
    body = ast.parse(package.read_text(encoding="utf-8")).body
    functions = [n.name for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    returned = [
        f"{node.module}.{alias.name}"
        for guard in body
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    said = (
        "# ragauge in Python\n\nWhat `import ragauge` has. Components are on the pages of their groups, what "
        "they must do is under [datasets](datasets.md), [retrieval](retrieval.md), [answers and judges](answering.md) "
        "and [measures](measures.md), what is raised under [Errors](errors.md)."
    )
    whole = _WHOLE.replace("}", f", members: [{', '.join(functions)}]}}")
    return "\n\n".join([said, f"::: ragauge\n{whole}", *(f"::: {name}" for name in returned)]) + "\n"


def _components(group: str, targets: dict[str, list[Option]]) -> str:
    ordered = sorted(targets.items(), key=lambda pair: pair[0].rpartition(".")[2].lower())
    rows = []
    for target, options in ordered:
        chosen = ", ".join(f"[`{o.name}`](../config/{group}.md#{o.name.lower()})" for o in options)
        rows.append(f"| [`{target.rpartition('.')[2]}`][{target}] | {chosen} |")
    table = "| class or function | built by |\n|---|---|\n" + "\n".join(rows)
    parts = [f"# {group}", f"What the options of [`{group}`](../config/{group}.md) build.", table]
    return "\n\n".join([*parts, *(f"::: {target}" for target, _ in ordered)]) + "\n"


def _helpers(docs: Path, known: set[str]) -> str:
    """What the Python examples of the guides import from ragauge, but the components and the contract."""
    names: set[str] = set()
    for guide in sorted(docs.glob("*.md")):
        for example in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
            for node in ast.walk(ast.parse(example)):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ragauge."):
                    names |= {f"{node.module}.{alias.name}" for alias in node.names}
    wanted = sorted(n for n in names - known if not n.startswith("ragauge.contract."))
    said = (
        "# For components of one's own\n\nWhat the examples of [Extending ragauge](../extending.md) are written with."
    )
    return "\n\n".join([said, *(f"::: {name}" for name in wanted)]) + "\n"
