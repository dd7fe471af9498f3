"""Hold what stays while threads come and go: the directory with its servers, its model and its backend."""
