#!/usr/bin/env python3
"""House rules no compiler knows: file sizes, module docs, unfinished work, and texts that must not drift from the code they quote.

    python3 scripts/tidy.py           check; exit code 1 and one line per fault
    python3 scripts/tidy.py --write   copy the quoted files into the documents again
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CEILING, TEST_CEILING = 600, 1500
UNFINISHED = re.compile(r"\b(todo|unimplemented|dbg)!\(|#\[ignore\]|\b(FIXME|XXX)\b")
MODULE_WORDS = ("decides", "believes", "bounded by")
# <!-- file: PATH --> and then one fenced block, which must be that file's text.
QUOTE = re.compile(r"(<!-- file: (?P<path>\S+) -->\n```\w*\n)(?P<text>.*?)(^```$)", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def tracked(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def is_test(path):
    parts = path.relative_to(ROOT).parts
    return path.name == "tests.rs" or "tests" in parts


def rust_faults(path):
    text = path.read_text()
    lines = text.count("\n")
    ceiling = TEST_CEILING if is_test(path) else CEILING
    if lines > ceiling:
        yield f"{lines} lines, the ceiling is {ceiling}: one idea per file"
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield f"line {number}: unfinished work: {line.strip()}"
    inside = path.relative_to(ROOT).parts
    if inside[:2] == ("core", "src") and not is_test(path) and path.name not in ("lib.rs", "mod.rs"):
        head = " ".join(re.findall(r"^//! ?(.*)$", text, re.M)).lower()
        for word in MODULE_WORDS:
            if word not in head:
                yield f"the module doc does not say what it {word}" if word != "bounded by" else "the module doc does not say what bounds it"


def document_faults(path, write):
    text = path.read_text()

    def quoted(match):
        return (ROOT / match["path"]).read_text().strip("\n") + "\n"

    for match in QUOTE.finditer(text):
        if not (ROOT / match["path"]).is_file():
            yield f"quotes {match['path']}, which is not there"
            return
    wanted = QUOTE.sub(lambda m: m[1] + quoted(m) + m[4], text)
    if wanted != text:
        if write:
            path.write_text(wanted)
        else:
            yield "quotes a file that reads differently now: python3 scripts/tidy.py --write"
    outside_code = re.sub(r"```.*?```", "", text, flags=re.S)
    for link in LINK.findall(outside_code):
        # What begins with `crate` is an item's name, which rustdoc looks up.
        if not link.startswith("crate") and not (path.parent / link).exists():
            yield f"links to {link}, which is not there"


def main():
    write = "--write" in sys.argv[1:]
    faults = []
    for path in tracked("*.rs"):
        faults += [(path, fault) for fault in rust_faults(path)]
    for path in tracked("*.md"):
        faults += [(path, fault) for fault in document_faults(path, write)]
    for path, fault in faults:
        print(f"{path.relative_to(ROOT)}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
