"""Name the file tools in the order in which a model is offered them, where no commands can be run."""

FILE_TOOLS = ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep"]
