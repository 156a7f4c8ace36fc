"""The config options that this repository ships: those of conf/, and those of the plug-ins."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"


def conf_folders() -> list[Path]:
    """conf/, then the folder of every plug-in that has one."""
    return [CONF, *sorted((ROOT / "src" / "ragauge" / "plugins").glob("*/conf"))]


def option_files(pattern: str = "*/*.yaml") -> list[Path]:
    """The files of all options, by group and name."""
    found = [file for folder in conf_folders() for file in folder.glob(pattern)]
    return sorted(found, key=lambda file: (file.parent.name, file.name))
