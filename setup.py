"""The build puts the configuration, which lies beside run.py, into the wheel as ragauge/conf.

All else about the package stands in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CONF = Path(__file__).resolve().parent / "conf"


class BuildWithConf(build_py):
    """Builds the package with a copy of conf/; an editable installation reads the source tree's own."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            copy = Path(self.build_lib) / "ragauge" / "conf"
            shutil.rmtree(copy, ignore_errors=True)  # an option of an earlier build may be gone
            shutil.copytree(CONF, copy)


setup(cmdclass={"build_py": BuildWithConf})
