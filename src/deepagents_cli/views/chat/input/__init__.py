"""Read what a person types: a line with its history, completion, pastes and attachments."""
