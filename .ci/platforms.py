"""Resolves the dependencies for every machine that ragauge is meant for, against wheels only.

    python .ci/platforms.py [--extras full,dev] [--python 3.13]

A line for each operating system, processor and version of Python; exit code 1 where one cannot be installed. It asks
the package index through uv, and installs nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# By the names of uv. Intel Macs are not among them: there is no torch 2.13 for them.
PLATFORMS = {
    "macOS 14 arm64": "aarch64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Linux aarch64": "aarch64-unknown-linux-gnu",
    "Linux x86-64": "x86_64-unknown-linux-gnu",
}
# Packages that have no wheels at all: Python alone, nothing is compiled.
PURE_SOURCE = ("antlr4-python3-runtime", "rouge-score")
# Packages that pip compiles there, which takes a C compiler and the headers of Python.
COMPILED = {"Linux aarch64": ("pytrec-eval-terrier", "pyndeval")}


def resolved(platform: str, python: str, extras: str) -> str:
    """What uv says where nothing fits; an empty text where all resolves."""
    sources = [*PURE_SOURCE, *COMPILED.get(platform, ())]
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "-c", "constraints.txt", "--quiet"),
        *("--python-platform", PLATFORMS[platform], "--python-version", python, "--only-binary", ":all:"),
        *(word for name in sources for word in ("--no-binary", name)),
        *(word for name in extras.split(",") if name for word in ("--extra", name)),
    ]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}  # of the wheels of faiss-cpu
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else " ".join(done.stderr.split())


def main() -> int:
    """Prints a line for each combination; 1 where one has no solution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extras", default=",".join(project["optional-dependencies"]), help="all, unless given")
    parser.add_argument("--python", choices=PYTHONS, action="append", help="all, unless given")
    given = parser.parse_args()
    failed = 0
    for platform, python in product(PLATFORMS, given.python or PYTHONS):
        said = resolved(platform, python, given.extras)
        failed += bool(said)
        print(f"{platform:15} Python {python}  {'no: ' + said if said else 'resolves'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
