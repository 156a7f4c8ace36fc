"""`make bench`: runs every benchmark, prints their tables and writes them to benchmarks/RESULTS.md."""

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
)


def version_of(package: str) -> str:
    """The installed version, or that there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Runs the scripts one after the other, each in a process of its own; 1 if one failed."""
    header = (
        "# Benchmarks\n\nWritten by `make bench`. Ratios were measured in one run each, on one machine: "
        "believe them more than the seconds.\n\n"
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; "
        + ", ".join(f"{name} {version_of(name)}" for name in PACKAGES)
        + "\n"
    )
    sections, failed = [header], 0
    for script in sorted(HERE.glob("bench_*.py")):
        title = (script.read_text(encoding="utf-8").split('"""')[1]).strip().splitlines()[0]
        print(f"\n{script.name}: {title}", flush=True)
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        print(done.stdout or done.stderr, flush=True)
        failed |= done.returncode != 0
        sections.append(f"## {script.name}\n\n{title}\n\n{done.stdout}")
    (HERE / "RESULTS.md").write_text("\n".join(sections), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
