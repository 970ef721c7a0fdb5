"""The README as an index shows it: its links and pictures lead into the repository. All else is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
SOURCE = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
readme = (HERE / "README.md").read_text(encoding="utf-8")
readme = re.sub(r"\]\((?!https?:|#)", f"]({SOURCE}/blob/main/", readme)
readme = re.sub(r'((?:src|srcset)=")(?!https?:)', rf"\g<1>{SOURCE}/raw/main/", readme)
setup(long_description=readme, long_description_content_type="text/markdown")
