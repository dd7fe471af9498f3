"""Find files by name and lines by text below a directory on disk.

Links are not followed. The result is the same with ripgrep and without: ripgrep only says which files are
worth opening, and the lines are always taken from them here.
"""

from deepagents.backends._search.grep import Found, Hit, Search, search, search_file
from deepagents.backends._search.lines import Line, Query
from deepagents.backends._search.ripgrep import find_ripgrep
from deepagents.backends._search.walk import Unread, Walk, walk

__all__ = [
    "Found",
    "Hit",
    "Line",
    "Query",
    "Search",
    "Unread",
    "Walk",
    "find_ripgrep",
    "search",
    "search_file",
    "walk",
]
