"""Makes the files of a release, checks and tries them: `nox -s release`. It publishes nothing."""
