"""`make bench`: runs every benchmark, prints their tables and writes them to benchmarks/RESULTS.md.

`python -m benchmarks bench_sweep bench_bm25` runs some of them.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = (
    "ragauge",
    "numpy",
    "numba",
    "scipy",
    "faiss-cpu",
    "langchain-community",
    "rapidfuzz",
    "mlflow",
    "torch",
    "sentence-transformers",
    "onnxruntime",
    "llama-index-core",
    "bm25s",
    "rank-bm25",
    "ranx",
    "pymilvus",
    "milvus-lite",
)


def version_of(package: str) -> str:
    """The installed version, or that there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def known_sections() -> dict[str, str]:
    """What RESULTS.md holds, by script."""
    results = HERE / "RESULTS.md"
    parts = results.read_text(encoding="utf-8").split("\n## ")[1:] if results.is_file() else []
    return {part.split("\n", 1)[0]: f"## {part.rstrip()}\n" for part in parts}


def main(names: list[str]) -> int:
    """Runs the scripts one after the other, each in a process of its own; 1 if one failed.

    `names` are the scripts to run (all without any); what the others found before stays.
    """
    header = (
        "# Benchmarks\n\nWritten by `make bench`. Ratios were measured in one run each, on one machine: "
        "believe them more than the seconds.\n\n"
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; "
        + ", ".join(f"{name} {version_of(name)}" for name in PACKAGES)
        + "\n"
    )
    scripts = {script.stem: script for script in sorted(HERE.glob("bench_*.py"))}
    unknown = [name for name in names if name not in scripts]
    if unknown:
        print(f"no benchmark {unknown[0]}; there are {', '.join(scripts)}", file=sys.stderr)
        return 2
    sections, failed = known_sections(), 0
    for name in names or scripts:
        script = scripts[name]
        title = (script.read_text(encoding="utf-8").split('"""')[1]).strip().splitlines()[0]
        print(f"\n{script.name}: {title}", flush=True)
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        print(done.stdout or done.stderr, flush=True)
        failed |= done.returncode != 0
        sections[script.name] = f"## {script.name}\n\n{title}\n\n{done.stdout.rstrip()}\n"
    text = "\n".join([header, *(sections[s.name] for s in scripts.values() if s.name in sections)])
    (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
