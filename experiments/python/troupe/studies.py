# SPDX-License-Identifier: BSD-3-Clause
"""Studies: the program `study` runs other programs, and writes tables and a page."""

import csv
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping

import numpy

from . import Data, Interrupted, Network, RunError, Schedule, _table, _text, _troupe, _values, _words

_package = os.path.dirname(os.path.abspath(__file__))


def _program():
    """The path of `study`: of the build that has the module, or where both are installed."""
    for folder in (os.path.join(_package, "..", "..", "experiments"), os.path.join(_package, _troupe.installed_programs)):
        path = os.path.join(folder, "study")
        if os.path.exists(path):
            return os.path.normpath(path)
    raise RuntimeError("there is no program 'study' beside the module: build the target study, or install troupe again")


def _rows(path):
    """A CSV file as a structured array; a column of numbers has NaN where a field is empty."""
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)

    def values(column):
        try:
            return numpy.array([float(field) if field else numpy.nan for field in column])
        except ValueError:
            return numpy.array(column)
    columns = [values(column) for column in (zip(*rows) if rows else [()] * len(names))]
    return _table(list(zip(*columns)), names)


class Study:
    """What a study has written. `runs` has a row for each run, `summary` one for each
    schedule and combination, as structured arrays (runs.csv, summary.csv). `folder` has
    the files, `table` is the printed text."""

    def __init__(self, folder, table):
        self.folder, self.table = folder, table
        self.runs, self.summary = (_rows(os.path.join(folder, name)) for name in ("runs.csv", "summary.csv"))

    def report(self, path):
        """Copies the study's page."""
        shutil.copyfile(os.path.join(self.folder, "study.html"), path)

    def _repr_html_(self):
        from html import escape
        with open(os.path.join(self.folder, "study.html"), encoding="utf-8") as page:
            return f'<iframe srcdoc="{escape(page.read())}" style="width: 100%; height: 32em; border: 0"></iframe>'

    def __repr__(self):
        return self.table


def perform(program, vary, options):
    """See troupe.study."""
    if not isinstance(vary, Mapping) or not all(isinstance(name, str) for name in vary):
        raise TypeError('vary takes names with their values, as {"microbatches": [4, 8]}')
    options.pop("quiet", None)  # nothing is printed
    for name, value in options.items():
        if name in ("help", "help_all", "version") and value:
            raise ValueError(f"{name} is for the command line: see help(troupe.study)")
        if isinstance(value, (Network, Data)):
            raise ValueError(f"a study runs programs, which have no {type(value).__name__} of Python: leave {name} out, or call compare")
        if any(isinstance(one, Schedule) for one in _values(value)):
            raise ValueError(f"a study runs programs, which read schedules from files: write the schedule's text, and give {name}='file:PATH'")
    words, _ = _words({name.rstrip("_"): value for name, value in options.items()})
    for name, values in vary.items():
        texts = [str(value).lower() if isinstance(value, (bool, numpy.bool_)) else _text(name, value)
                 for value in _values(values)]
        if not texts or any(text == "" or ";" in text for text in texts):
            raise ValueError(f"vary: {name} has no values, an empty one, or one with a semicolon, which separates values")
        words.append(f"--vary={name.replace('_', '-')}=" + "".join(text + ";" for text in texts))
    # A session of its own: Ctrl-C of the terminal reaches the program once. The program ends with this thread.
    started = subprocess.Popen(["setpriv", "--pdeathsig", "INT", _program(), program, *words], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="surrogateescape", start_new_session=True)
    ended_by = None
    while True:
        try:
            out, err = started.communicate()
            break
        except BaseException as error:  # of a signal's handler, as KeyboardInterrupt
            if started.poll() is not None:
                raise
            ended_by = ended_by or error
            started.send_signal(signal.SIGINT)
    told = [line.removeprefix("study: ") for line in err.splitlines() if line.startswith("study: ")]
    sentence = told[-1] if told else f"study has ended with {started.returncode}"
    folder = re.search(r"^  (.*)/study\.html$", out, re.MULTILINE) or re.search(r"--continue (.*)$", sentence)
    study = Study(folder[1], out) if folder and os.path.exists(os.path.join(folder[1], "runs.csv")) else None
    if ended_by is not None and not isinstance(ended_by, KeyboardInterrupt):
        raise ended_by
    if started.returncode == 130 or ended_by is not None:
        raise Interrupted(study)
    if started.returncode == 2:  # a wrong option of the study, or of all its runs
        raise ValueError(study.runs["error"][0] if study else sentence.partition("; see study --help")[0])
    if started.returncode != 0:
        raise RunError(sentence, study)
    return study
