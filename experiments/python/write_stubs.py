# SPDX-License-Identifier: BSD-3-Clause
"""Writes the module's type stubs: a template in which @NAME@ is the list of a program's keywords.
Usage: write_stubs.py TEMPLATE FILE, with the module on PYTHONPATH."""

import inspect
import re
import sys

del sys.path[0]  # has the sources, without the compiled part
import troupe


def keywords(match):
    own = inspect.signature(getattr(troupe, match[1])).parameters
    kinds = {"model": "_Model", "data": "_Samples"} if "model" in own else {}
    return ", ".join(f"{name}: {kinds.get(name, '_Value')} = ..." for name in own if name != "progress")


with open(sys.argv[1], encoding="utf-8") as template:
    text = re.sub(r"@(\w+)@", keywords, template.read())
with open(sys.argv[2], "w", encoding="utf-8") as stubs:
    stubs.write(text)
