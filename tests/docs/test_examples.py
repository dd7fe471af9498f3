"""The examples of a page are run, together and in order; a broken one is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

STORY = """
```python
from pathlib import Path
Path("notes.md").write_text("one")
```

<!-- invisible-code: python
kept = Path("notes.md")
-->

```python
assert kept.read_text() == "{expected}"
```
"""


@pytest.mark.parametrize(("expected", "outcome"), [("one", "3 passed"), ("two", "1 failed")])
def test_the_examples_of_a_page_are_one_story(expected: str, outcome: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "README.md").write_text(STORY.format(expected=expected))

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "README.md"], cwd=tmp_path, capture_output=True, text=True
    )

    assert outcome in run.stdout
    assert not (tmp_path / "notes.md").exists()
