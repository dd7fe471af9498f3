"""Handle text as the tools see it: lines and windows, exact replacement, merging."""

from deepagents._text.endings import keep_line_endings, line_ending, to_lf
from deepagents._text.lines import Window, is_blank, past_end, split_keeping_ends, split_lines, window
from deepagents._text.mend import Mended, is_escaped_twice, mend
from deepagents._text.merge import merge3
from deepagents._text.replace import (
    EMPTY_OLD_STRING_ERROR,
    Replacement,
    find_change,
    name_edit,
    replace_each,
    replace_exact,
)
from deepagents._text.show import (
    MAX_LINE_LENGTH,
    cut_line,
    describe_exception,
    escape_controls,
    format_size,
    number_lines,
    preview,
    truncate,
)

__all__ = [
    "EMPTY_OLD_STRING_ERROR",
    "MAX_LINE_LENGTH",
    "Mended",
    "Replacement",
    "Window",
    "cut_line",
    "describe_exception",
    "escape_controls",
    "find_change",
    "format_size",
    "is_blank",
    "is_escaped_twice",
    "keep_line_endings",
    "line_ending",
    "mend",
    "merge3",
    "name_edit",
    "number_lines",
    "past_end",
    "preview",
    "replace_each",
    "replace_exact",
    "split_keeping_ends",
    "split_lines",
    "to_lf",
    "truncate",
    "window",
]
