"""Replace text and keep its line ends. Sandboxes run this too: nothing newer than Python 3.6."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Half of a `\r\n` must not match, or the other half would stay.
_ANY_END = "(?:\r\n|\n|\r(?!\n))"


def to_lf(text: str) -> str:
    """End every line with `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def line_ending(text: str) -> "str | None":
    """Return how all lines of a text end; `None` when they differ or when there are none."""
    crlf = text.count("\r\n")
    lf, cr = text.count("\n") - crlf, text.count("\r") - crlf
    found = [ending for ending, times in (("\r\n", crlf), ("\n", lf), ("\r", cr)) if times]
    return found[0] if len(found) == 1 else None


def keep_line_endings(old_content: str, new_content: str) -> str:
    """Give new content the `\\r\\n` of the old when all old lines had it and the new has only `\\n`."""
    if "\r" in new_content or line_ending(old_content) != "\r\n":
        return new_content
    return new_content.replace("\n", "\r\n")


def with_any_end(text: str) -> "re.Pattern[str]":
    """Compile what matches a text whatever its lines end with."""
    import re

    return re.compile(_ANY_END.join(re.escape(line) for line in to_lf(text).split("\n")))


def replace_text(content: str, old: str, new: str) -> "tuple[str, int]":
    """Replace every `old`, in which a `\\n` fits any line end; return the text and how many there were."""
    if "\r" in old and old in content:
        return content.replace(old, new), content.count(old)
    ending = line_ending(content)
    if ending is None and "\r" in content:
        return _replace_mixed(content, old, new)
    if ending is not None:
        old, new = to_lf(old).replace("\n", ending), to_lf(new).replace("\n", ending)
    return content.replace(old, new), content.count(old)


def _replace_mixed(content: str, old: str, new: str) -> "tuple[str, int]":
    """Replace where lines end in different ways: new lines end as the replaced ones did."""
    import re

    def put(found: "re.Match[str]") -> str:
        end = re.search("\r\n|\n|\r", found.group())
        return to_lf(new).replace("\n", end.group()) if end else new

    return with_any_end(old).subn(put, content)
