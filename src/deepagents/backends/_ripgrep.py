"""Ask ripgrep which files are worth opening. Sandboxes run this too: nothing newer than Python 3.6."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

# No ignore files, no configuration: the result must be the same as without ripgrep.
_LIST = ("--no-config", "--no-messages", "--null", "--hidden", "--no-ignore", "--no-follow", "--color=never")
_MATCH = ("--files-with-matches", "--fixed-strings", "--case-sensitive", "--text", "--encoding=none")


def find_candidates(
    program: str, start: "bytes | PathLike[str]", needle: bytes, largest: int, ends: float
) -> "tuple[set[bytes], bool] | None":
    """Find the files that hold the bytes, and those too large to be searched, by path from the start.

    Returns them, and whether that was done before the clock got to `ends`; `None` when ripgrep fails. It
    keeps whole lines in memory, so it gets no file of more than `largest` bytes. It does not say which files
    it leaves out, only how many it searched: where a list of all files has more, they are what that has more
    than one with the bound.
    """
    if not needle or b"\0" in needle or b"\n" in needle:
        return None
    bound = f"--max-filesize={largest}"
    found = _run((program, *_LIST, bound, "--stats", *_MATCH, "--", needle, "."), start, ends)
    files = found and _run((program, *_LIST, "--files", "."), start, ends)
    if not (found and files):
        return None
    names, searched, in_time = found
    every, _, has_all = files
    if b"\n%d files searched\n" % len(every) not in searched:
        small = _run((program, *_LIST, bound, "--files", "."), start, ends)
        if not small:
            return None
        in_time = in_time and small[2]
        names += {*every}.difference(small[0]) if small[2] else ()
    return {name[2:] if name[:2] in (b"./", b".\\") else name for name in names}, in_time and has_all


def _run(
    command: "tuple[str | bytes, ...]", start: "bytes | PathLike[str]", ends: float
) -> "tuple[list[bytes], bytes, bool] | None":
    """Return the names that ripgrep prints, what it prints behind them, and whether it ended in time."""
    import subprocess

    in_time = True
    try:
        done = subprocess.run(
            command, cwd=start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=max(ends - time.monotonic(), 0.01), check=False,
        )  # fmt: skip
        output = done.stdout
        # 1 means no match; anything above is a failure, and then every file is walked here.
        if done.returncode not in (0, 1):
            return None
    except subprocess.TimeoutExpired as late:
        output, in_time = late.output or b"", False
    except OSError:
        return None
    # What is behind the last name may be a name that was cut when the program was stopped.
    *names, rest = output.split(b"\0")
    return names, rest, in_time
