# SPDX-License-Identifier: BSD-3-Clause
"""Links and paths of documents; tests/style/links runs this file in the root of the tree."""
import functools
import glob
import os
import re
import sys

FOLDERS = "kernels|schedules|messaging|models|plan|planner|actors|experiments|examples|tests|docs|cmake"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?:[A-Z]{3,}(?!\.md)|x|my_\w+)(?![A-Za-z])")  # NAME, x.cpp, my_schedule.cpp


def plain(text):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchor(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\s-]", "", heading).replace(" ", "-")


@functools.cache
def anchors(path):
    with open(path, encoding="utf-8") as file:
        return {anchor(found) for found in re.findall(r"^#+ (.*)$", plain(file.read()), re.M)}


def is_path(name):
    return os.path.exists(name) or glob.glob(name + ".*")  # `kernels/gelu` stands for gelu.hpp, .cpp and .cu


def faults_of(name, text):
    text = plain(text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if not os.path.exists(path):
            yield f"{name}: the link to {target} leads to no file"
        elif heading and path.endswith(".md") and heading not in anchors(path):
            yield f"{name}: the link to {target} leads to no heading"
    for path in PATH.findall(text):
        if not is_path(path.rstrip("/")) and not PLACEHOLDER.search(path):
            yield f"{name}: there is no {path}"


# Texts, and how many faults each has as docs/proofs.md.
EXAMPLES = [
    ("[a](proofs.md) [b](proofs.md#mutants) [c](#mutants) [d](../LICENSE) [e](https://x.y/z#w)", 0),
    ("[a](nothing.md)", 1),
    ("[a](proofs.md#nothing) [b](#nothing)", 2),
    ("`tests/style/links.py`, `tests/style`, `actors/proof/proof`, `tests/mutants/NAME.txt`", 0),
    ("`actors/nothing.hpp`, `tests/nothing/`", 2),
    ("```\n[a](nothing.md) `actors/nothing`\n```\n", 0),
]


def main():
    for text, count in EXAMPLES:
        found = list(faults_of("docs/proofs.md", text))
        if len(found) != count:
            sys.exit(f"tests/style/links.py: the example {text!r} has the faults {found}")
    files = sys.argv[1:] or ["README.md", *sorted(glob.glob("docs/*.md")), *sorted(glob.glob("*/*/**/README.md", recursive=True))]
    faults = []
    for name in (name for name in files if not name.startswith("build")):
        with open(name, encoding="utf-8") as file:
            faults += faults_of(name, file.read())
    print("\n".join(faults)) if faults else None
    return 1 if faults else 0


sys.exit(main())
