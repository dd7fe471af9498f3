"""Match paths by one glob dialect, for `glob`, the filter of `grep`, and permissions.

A pattern without `/` matches the name of a file at any depth. With `/` it matches the whole path below the
search root, where `**` stands for any number of directories. `*`, `?` and `**` do not match a leading dot; a
pattern segment that starts with a dot does. `{a,b}`, `[abc]`, `[!abc]`, escapes work as usual; case counts.
"""

from deepagents._globs.pattern import EVERY_FILE, GlobPattern, compile_glob, parse_glob
from deepagents._globs.places import Place, Places
from deepagents._globs.segments import (
    ANY_DIRECTORIES,
    MAX_EXPANSIONS,
    InvalidGlobPatternError,
    anchor,
    path_expression,
)

__all__ = [
    "ANY_DIRECTORIES",
    "EVERY_FILE",
    "MAX_EXPANSIONS",
    "GlobPattern",
    "InvalidGlobPatternError",
    "Place",
    "Places",
    "anchor",
    "parse_glob",
    "compile_glob",
    "path_expression",
]
