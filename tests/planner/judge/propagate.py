# SPDX-License-Identifier: BSD-3-Clause
"""Spreads a few sharding annotations over einsums by the rules of README.md, and says which collectives that needs.

    python3 propagate.py ../propagation.json
"""
import json
import sys


def letters_of(operator):
    left, right = operator['einsum'].split('->')
    return left.split(','), right


def spread(case):
    ranks = {}
    for operator in case['operators']:
        inputs, output = letters_of(operator)
        for name, letters in zip(operator['inputs'] + [operator['output']], inputs + [output]):
            ranks[name] = len(letters)
    sharding = {name: list(case['annotated'].get(name, [None] * rank)) for name, rank in ranks.items()}

    def give(name, letters, letter, axis):
        """True if a dimension that is free takes the axis."""
        if name in case['annotated'] or letter not in letters or axis is None:
            return False
        place = letters.index(letter)
        if sharding[name][place] is not None or axis in sharding[name]:
            return False
        sharding[name][place] = axis
        return True

    def elementwise(operator):
        inputs, output = letters_of(operator)
        return len(inputs) == 1 and inputs[0] == output

    def walk(chosen):
        changed = False
        for operator in chosen:
            if operator.get('reshard'):
                continue
            inputs, output = letters_of(operator)
            ends = list(zip(operator['inputs'], inputs)) + [(operator['output'], output)]
            for letter in dict.fromkeys(''.join(inputs) + output):
                axis = next((sharding[n][l.index(letter)] for n, l in ends if letter in l and sharding[n][l.index(letter)] is not None), None)
                if letter in output:
                    # what the output cannot take, because its axis is spent or it is annotated otherwise, goes no further
                    give(operator['output'], output, letter, axis) and (changed := True)
                    axis = sharding[operator['output']][output.index(letter)]
                for name, letters in ends[:-1]:
                    give(name, letters, letter, axis) and (changed := True)
        return changed
    while walk([o for o in case['operators'] if elementwise(o)]) or walk(case['operators']):
        pass
    return sharding


def collectives(case, sharding):
    out = []
    for place, operator in enumerate(case['operators']):
        inputs, output = letters_of(operator)
        held = sharding[operator['output']]
        wanted = {letter: held[output.index(letter)] for letter in output}
        for name, letters in zip(operator['inputs'], inputs):
            for letter, axis in zip(letters, sharding[name]):
                if letter not in output:
                    wanted.setdefault(letter, None)
                    wanted[letter] = wanted[letter] or axis
        summed = {wanted[l]: l for l in wanted if l not in output and wanted[l]}
        for name, letters in zip(operator['inputs'], inputs):
            for letter, axis in zip(letters, sharding[name]):
                if axis is not None and wanted[letter] != axis:
                    elsewhere = any(wanted[l] == axis for l in letters)
                    out.append(['all-to-all' if elsewhere else 'all-gather', place, axis, name])
        for axis in summed:
            out.append(['reduce-scatter' if axis in held else 'all-reduce', place, axis, operator['output']])
    return out


if __name__ == '__main__':
    wrong = 0
    for path in sys.argv[1:]:
        with open(path) as file:
            for case in json.load(file):
                got = spread(case)
                moved = collectives(case, got)
                good = got == case['expected']['shardings'] and moved == case['expected']['collectives']
                wrong += not good
                print('ok   ' if good else 'WRONG', case['name'])
                if not good:
                    print('   ', {n: (s, case['expected']['shardings'].get(n)) for n, s in got.items() if s != case['expected']['shardings'].get(n)}, moved)
    sys.exit(wrong > 0)
