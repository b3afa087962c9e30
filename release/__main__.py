"""Make a release in a folder: ``python -m release --to dist``. `nox -s release` runs it.

The files are made from the newest commit: nothing that is not committed gets into them. Each step
ends the program if it finds something wrong. A person publishes: the last lines say how.
"""

import argparse
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from release._build import build_man, build_npm, build_python, notes, stage
from release._check import check_python, check_versions
from release._try import bill_of_materials, install_all, pythons, try_npm, try_python
from release._words import ROOT, run, say, stop


def main() -> None:
    """Make, check and try the files."""
    parser = argparse.ArgumentParser(prog="nox -s release --", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder of the files")
    parser.add_argument("--version", help="the version that is meant: stop if it is another one")
    parser.add_argument("--sign", action="store_true", help="sign each file with sigstore, at last")
    parser.add_argument(
        "--python",
        action="append",
        help="an interpreter to try the files with; the lowest and the newest found without it",
    )
    options = parser.parse_args()
    to = options.to.resolve()
    if shutil.which("npm") is None:
        stop("npm is missing: the package of the JavaScript client is a part of a release")
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tree = stage(work / "tree")
        version = check_versions(tree, options.version)
        say(f"penstock {version}, from {run('git', 'log', '-1', '--format=%h %s', cwd=ROOT)}")
        wheels = build_python(tree, to)
        check_python(tree, to)
        package = build_npm(tree, to, work)
        for python in options.python or pythons():
            try_python(python, wheels, tree, work)
        try_npm(package, work)
        programs = install_all(wheels, work)
        bill_of_materials(programs, to, work, version)
        build_man(programs, to, work, version)
        (to / "NOTES.md").write_text(notes(tree, version), encoding="utf-8")
    files = sorted(path for path in to.iterdir() if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (to / "SHA256SUMS").write_text("\n".join([*sums, ""]), encoding="ascii")
    if options.sign:
        # It opens a page of an identity provider, or takes the identity of a hosted CI.
        run("sigstore", "sign", *map(str, files), cwd=to, shown=True)
    where = os.path.relpath(to)
    say(
        f"{len(files)} files and their sums are in {where}. Nothing is published. A person does it:"
    )
    say(f"  twine upload {where}/*.whl {where}/*[0-9].tar.gz")
    say(f"  npm publish {where}/{package.name}")


if __name__ == "__main__":
    main()
