"""What a history of files costs: a step with it and without, and the disk that it takes."""

from __future__ import annotations

from benchmarks.contenders import OURS, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

ON, OFF = "undo on", "undo off"
FEW = 200
_FILE_TOOL, _COMMAND, _DISK = 5.0, 150.0, 1.2


def plan(size: Size) -> Part:
    """Measure steps at 200 files and at as many as are searched, and a hundred sessions of edits."""
    counts = (FEW, size.files, *size.lengths[:1])
    jobs = [
        Job("undo", name, module(python_of(OURS), "undo", way, *counts))
        for way, name in (("on", ON), ("off", OFF))
    ]
    rows = [
        Row(f"{what}, {count:,} files", f"undo {key} {count}")
        for key, what in (("file", "write_file"), ("command", "execute"))
        for count in dict.fromkeys((FEW, size.files))
    ]
    steps = Table(
        "A step with undo",
        "milliseconds a step",
        [ON, OFF],
        rows,
        ratios=[(ON, OFF)],
        targets=[
            _added("a file tool", "file", size, _FILE_TOOL),
            _added("a command", "command", size, _COMMAND),
        ],
    )
    disk = Table(
        "Disk of undo",
        "as it says",
        [ON],
        [
            Row("megabytes of text in the tree", "undo text"),
            Row("megabytes after the first record", "undo first"),
            Row("bytes on disk for one that is written after it", "undo grown"),
        ],
        targets=[Target("disk of undo for what was written", ("undo grown", ON), None, _DISK)],
        notes=["A hundred sessions make a hundred edits each, of files that are written anew."],
    )
    return Part(jobs, [steps, disk])


def _added(what: str, key: str, size: Size, most: float) -> Target:
    measure = f"undo {key} {size.files}"
    return Target(f"milliseconds of undo around {what}", (measure, ON), (measure, OFF), most, added=True)
