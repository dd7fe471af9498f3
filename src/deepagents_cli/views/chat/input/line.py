"""Edit the line that is typed at: its history, completion, folded pastes, and texts that come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition

from deepagents_cli.project.state import state_dir
from deepagents_cli.views.chat.input.completion import ChatCompleter
from deepagents_cli.views.chat.input.composer import Composer
from deepagents_cli.views.chat.input.files import FileIndex
from deepagents_cli.views.chat.input.keyboard import open_history


class InputLine(Buffer):
    """The input line of a directory; `commands` are those that can be completed."""

    def __init__(
        self,
        directory: Path,
        changeable: Sequence[Path],
        commands: Callable[[], Mapping[str, str]],
        changed: Callable[[], None],
    ) -> None:
        self._composer = Composer(directory, changeable)
        self._directory = directory
        self._completer = ChatCompleter(commands, FileIndex(directory), directory, self._complete_again)
        super().__init__(
            history=open_history(state_dir(), lambda text: self._composer.expand(text)[0]),
            completer=self._completer,
            # Each completion is drawn anew, so that only what can be completed is tried.
            complete_while_typing=Condition(lambda: "@" in self.text or self.text[:1] == "/"),
            multiline=True,
            name="input",
            on_text_changed=lambda _: changed(),
        )

    def move(self, directory: Path) -> None:
        """Complete and attach the files of this directory from now on."""
        if directory != self._directory:
            self._directory = directory
            self._composer.move(directory)
            self._completer.move(directory)

    def _complete_again(self) -> None:
        state = self.complete_state
        # What the person has begun to choose from stays, and a search at work looks again by itself.
        is_begun = state is not None and (state.complete_index is not None or not state.completions)
        if "@" in self.text and not is_begun:
            # As long as something is offered nothing else is looked for.
            self.complete_state = None
            self.start_completion()

    def take(self) -> tuple[str, list[str]]:
        """Empty the line into the history; return the message that stood in it, and its attachments."""
        text, attachments = self._composer.expand(self.text)
        self.append_to_history()
        self.reset()
        return text.strip(), attachments

    def paste(self, text: str) -> None:
        """Insert a pasted text, folded where it is long."""
        self.cut_selection()
        self.insert_text(self._composer.paste(text))

    def paste_picture(self) -> bool:
        """Attach the picture in the clipboard; return whether there is one."""
        mark = self._composer.paste_picture()
        self.insert_text(mark or "")
        return mark is not None

    def type_again(self, text: str) -> None:
        """Put a text into the line, to be changed."""
        self.text = text
        self.cursor_position = len(text)

    def offer_again(self, text: str) -> None:
        """Put a text that was not taken into the line, selected: Enter sends it, and typing replaces it."""
        self.type_again(text)
        self.cursor_position = 0
        self.start_selection()
        if self.selection_state:
            self.selection_state.enter_shift_mode()
        self.cursor_position = len(text)
