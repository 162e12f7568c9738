# SPDX-License-Identifier: BSD-3-Clause
"""Limits of words in documents, comments and names; tests/style/words runs this file."""
import glob
import os
import re
import sys

LONGEST = 30  # words: a sentence has fewer
FIRST_PAGE = ("README.md", 200, 2000)  # lines and words that the page may have at most
RATES = {  # words of each kind, at most so many of 1,000
    "what": (r"what", 3),
    "pronouns": (r"it|its|they|their|them|those|these", 15),
}
FOLDERS = ["kernels", "schedules", "messaging", "models", "plan", "planner", "actors", "experiments"]
SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
NAMES = 8  # function words among identifiers of a folder, at most so many of 1,000
FUNCTION_WORDS = set("""what how who whom of by on at all one with about some own other others there here it made told
given found wrong right""".split())
ABBREVIATIONS = r"\b(?:e\.g|i\.e|al|cf|vs|Fig|Sec|No)\."


def units(text):
    """Paragraphs, list items, headings and table cells of a document, with the line where each begins. Code is left out."""
    paragraph, begin, fenced, blank, code, in_list = [], 0, False, True, False, False

    def end():
        nonlocal paragraph
        done, paragraph = paragraph, []
        return [(begin, " ".join(done))] if done else []

    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield from end()
            continue
        # An indented line is code behind an empty line, unless a list item goes on.
        code = line.startswith("    ") and (code or (blank and not in_list))
        blank = not line.strip()
        if fenced or code:
            yield from end()
        elif blank:
            yield from end()
        elif line.startswith("|"):
            yield from end()
            if not re.fullmatch(r"[|\s:-]+", line):
                for cell in line.strip().strip("|").split("|"):
                    yield number, cell
        elif line.startswith("#"):
            yield from end()
            yield number, line.lstrip("# ")
        else:
            if re.match(r"\s*([-*+]|\d+\.)\s", line):
                yield from end()
            if not paragraph:
                begin = number
            paragraph.append(re.sub(r"^\s*([-*+>]|\d+\.)\s+", "", line).strip())
        if not blank:
            in_list = bool(re.match(r"\s*([-*+]|\d+\.)\s", line)) or (line.startswith(" ") and in_list)
    yield from end()



def prose(text):
    """A unit as it is read: texts of links and pictures without targets, and each piece of code as one word."""
    text = re.sub(r"<!--.*?-->", " ", text)
    text = re.sub(r"``.+?``|`[^`]*`", " Code ", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", " Link ", text)
    return re.sub(r"[*_]{1,2}(\S(?:.*?\S)?)[*_]{1,2}", r"\1", text)


def sentences(text):
    text = re.sub(ABBREVIATIONS, lambda found: found.group().replace(".", ""), text)
    return re.split(r"(?<=[.!?])[)\"']*\s+(?=[\"'(]*[A-Z0-9\\])", text)


def words_of(text):
    return re.findall(r"[A-Za-z][A-Za-z'-]*", text)


def faults_of(name, text, counts):
    read = [(line, prose(unit)) for line, unit in units(text)]
    found = []
    longest = 0
    for line, unit in read:
        for sentence in sentences(unit):
            size = len(words_of(sentence))
            longest = max(longest, size)
            if size >= LONGEST:
                found.append(f"{name}:{line}: a sentence has {size} words; the limit is {LONGEST - 1}: {sentence[:90]}..")
    whole = " ".join(unit for _, unit in read)
    size = len(words_of(whole))
    rates = {}
    for kind, (pattern, limit) in RATES.items():
        count = len(re.findall(rf"\b(?:{pattern})\b", whole, re.I))
        rates[kind] = 1000 * count / max(size, 1)
        if rates[kind] > limit and count > 1:
            found.append(f"{name}: {count} {kind} in {size} words, {rates[kind]:.1f} of 1,000; the limit is {limit}")
    page, most_lines, most_words = FIRST_PAGE
    size_of_page = text.count("\n"), len(text.split())
    if name == page and (size_of_page[0] > most_lines or size_of_page[1] > most_words):
        found.append(f"{name}: {size_of_page[0]} lines and {size_of_page[1]} words; the limits are {most_lines} and {most_words}")
    if counts:
        print(f"{name}: {size} words, longest sentence {longest}, "
              + ", ".join(f"{kind} {rate:.1f}" for kind, rate in rates.items()))
        return []
    return found


def comments(text):
    """Paragraphs of C++ comments with their lines. A command as \\param begins one; a comment behind code is one."""
    paragraph, begin = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        found = re.search(r"(?:^|\s)//[/<!]*\s?(.*)$", line.strip())
        alone = line.strip().startswith("//")
        said = found.group(1) if found and "http" not in line and "SPDX" not in line else ""
        # Pictures and tables stand apart from sentences.
        if paragraph and (not said or not alone or said.startswith("\\") or said.startswith("  ")):
            yield begin, " ".join(paragraph)
            paragraph = []
        if said:
            begin = begin if paragraph else number
            paragraph.append(said)
        if not alone and paragraph:
            yield begin, " ".join(paragraph)
            paragraph = []


def identifiers(text):
    """Names in C++ code. Member functions `at` are the standard library's."""
    code = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    code = re.sub(r"//[^\n]*|#include.*", "", code)
    code = re.sub(r"(\.|->)at\(", "(", code)
    return re.findall(r"\b[a-z_]\w*\b", code)


def faults_of_code(folder, texts, counts):
    """Rates are of a whole folder; sentences are counted one by one. \\param texts: contents by file name"""
    found, words, names, kinds, odd = [], 0, 0, dict.fromkeys(RATES, 0), {}
    for name, text in texts.items():
        for line, paragraph in comments(text):
            words += len(words_of(paragraph))
            for kind, (pattern, _) in RATES.items():
                kinds[kind] += len(re.findall(rf"\b(?:{pattern})\b", paragraph, re.I))
            for sentence in sentences(prose(paragraph)):
                size = len(words_of(sentence))
                if size >= LONGEST:
                    found.append(f"{name}:{line}: a sentence has {size} words; the limit is {LONGEST - 1}: {sentence[:90]}..")
        known = identifiers(text)
        names += len(known)
        for word in known:
            if word.rstrip("_") in FUNCTION_WORDS:
                odd[word] = odd.get(word, 0) + 1
    rates = {kind: 1000 * count / max(words, 1) for kind, count in kinds.items()}
    for kind, (_, limit) in RATES.items():
        if rates[kind] > limit and kinds[kind] > 1:
            found.append(f"comments of {folder}: {kinds[kind]} {kind} in {words} words, {rates[kind]:.1f} of 1,000; the limit is {limit}")
    rate = 1000 * sum(odd.values()) / max(names, 1)
    if rate > NAMES:
        most = ", ".join(f"{word} {count}" for word, count in sorted(odd.items(), key=lambda entry: -entry[1])[:6])
        found.append(f"names of {folder}: {rate:.1f} function words of 1,000; the limit is {NAMES}: {most}")
    if counts:
        print(f"{folder}: {words} words of comments, " + ", ".join(f"{kind} {value:.1f}" for kind, value in rates.items())
              + f"; {names} names, function words {rate:.1f}")
        return []
    return found


def read_sources(folder):
    texts = {}
    for place, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            if name.endswith(SOURCES):
                with open(os.path.join(place, name), encoding="utf-8") as file:
                    texts[os.path.join(place, name)] = file.read()
    return texts


# A document, and a word of each fault that it has.
EXAMPLES = [
    ("word " * 29 + "\n", []),
    ("word " * 30 + "\n", ["sentence"]),
    ("Word " * 20 + "end. " + "Word " * 20 + "\n", []),
    ("Word " * 20 + "e.g. " + "Word " * 20 + "\n", ["sentence"]),
    ("- " + "word " * 20 + "\n- " + "word " * 20 + "\n", []),
    ("| " + "word " * 20 + " | " + "word " * 20 + "|\n", []),
    ("```\n" + "it " * 40 + "\n```\n\n    " + "it " * 40 + "\n", []),
    ("See [it](its.md#their-them) of `what what what`. " + "Word. " * 50 + "\n", []),
    ("It has these.\n", ["pronouns"]),
    ("What is this? " + "Word. " * 500 + "What?\n", ["what"]),
]


# A source, and a word of each fault that it has.
CODE_EXAMPLES = [
    ("// Sends the gradient to the stage below.\nvoid send(const gradient& message);\n", []),
    ("// " + "word " * 29 + "\n", []),
    ("// " + "word\n// " * 30 + "\n", ["sentence"]),
    ("// " + "word " * 20 + "\n/// \\param stage " + "word " * 20 + "\n", []),
    ("int a; // It has these.\n", ["pronouns"]),
    ("// What has what.\n" + "// Word word word.\n" * 50, ["what"]),
    ("int of = what.what;\n", ["names"]),
    ("int name = table.at(0); // the text \"it\" of a string\nauto s = \"what what of on\";\n", []),
]


def check_examples():
    for text, expected in CODE_EXAMPLES:
        found = faults_of_code("example", {"example.hpp": text}, False)
        if len(found) != len(expected) or not all(word in fault for word, fault in zip(expected, found)):
            sys.exit(f"tests/style/words.py: the example {text[:60]!r} has the faults {found}")
    for text, expected in EXAMPLES:
        found = faults_of("example", text, False)
        if len(found) != len(expected) or not all(word in fault for word, fault in zip(expected, found)):
            sys.exit(f"tests/style/words.py: the example {text[:60]!r} has the faults {found}")


def main():
    check_examples()
    counts = "--counts" in sys.argv[1:]
    named = [name for name in sys.argv[1:] if name != "--counts"]
    files = named or ["README.md", *sorted(glob.glob("docs/*.md"))]
    faults = []
    if not named:
        for folder in FOLDERS:
            faults += faults_of_code(folder, read_sources(folder), counts)
    for name in files:
        with open(name, encoding="utf-8") as file:
            faults += faults_of(name, file.read(), counts)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
