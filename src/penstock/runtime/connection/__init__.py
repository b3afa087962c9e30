"""One connection: the logical connection, its link (one transport connection), and what a program sees of its peer."""
