# SPDX-License-Identifier: BSD-3-Clause
"""Judges a planner's answers to the cases of this folder.

    python3 check.py                                       # the files themselves: each stated plan costs what it is said to
    python3 check.py --program './troupe plan --case {case} --planner {planner}'
    python3 check.py --program ... --only alpa --within 1.02

A case without its answer is written to a file, the program prints JSON: {"cost": x, "plan": p}, or {"cost": null} if nothing fits.
A plan must keep the case's rules, cost what the program says (to 1e-9 of it), and no more than the optimum times `--within`.
{planner} is what the case calls for: see PLANNERS. Needs Python's own library only. Ends with 1 if anything is wrong.
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import costs
import propagate

FILES = ['pipedream', 'tarnawski', 'piper', 'alpa', 'dapple', 'placement', 'intra', 'real', 'propagation']
PLANNERS = {'pipedream': ['pipedream'], 'piper': ['piper'], 'alpa': ['alpa'], 'dapple': ['dapple'], 'dapple_latency': ['dapple_latency'],
            'placement': ['mcmc', 'policy_gradient'], 'intra': ['alpa_intra', 'mcmc'], 'propagation': ['gspmd']}

WITHIN = {'mcmc': 1.02, 'policy_gradient': 1.05, 'dapple': 1.05, 'tarnawski_ip': 1.000001}


def planners_of(case):
    if case['kind'] == 'tarnawski':
        return ['tarnawski'] if case['split'] == 'pipeline' else ['tarnawski_ip']
    return PLANNERS[case['kind']]


def near(a, b, part=1e-9):
    return abs(a - b) <= part * max(abs(a), abs(b), 1e-12)


def judge(case, answer, within, root):
    """None, or what is wrong."""
    expected = case['expected']
    if case['kind'] == 'propagation':
        if answer.get('shardings') != expected['shardings']:
            return 'other shardings'
        moved = sorted(map(json.dumps, answer.get('collectives', [])))
        return None if moved == sorted(map(json.dumps, expected['collectives'])) else f'other collectives: {moved}'
    if case['kind'] == 'dapple_latency':
        names = ('pivot', 'warm_up', 'steady', 'end', 'cost')
        wrong = [n for n in names if n not in answer or not near(answer[n], expected[n])]
        return 'other ' + ', '.join(wrong) if wrong else None
    best = expected.get('cost', expected.get('at_most'))
    if answer.get('cost') is None:
        return None if best is None else f'finds nothing, though {best} can be had'
    if best is None:
        return 'finds a plan where there is none'
    try:
        paid = costs.EVALUATORS[case['kind']](case, answer['plan'], root)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f'breaks a rule: {error!r}'
    if not near(paid, answer['cost']):
        return f'says {answer["cost"]}, costs {paid}'
    if paid > best * within * (1 + 1e-9) + 1e-15:
        return f'costs {paid}, {paid / best:.4f} of the best'
    if 'cost' in expected and paid < best * (1 - 1e-6):
        return f'costs {paid}, below the optimum {best}: the case or the judge is wrong'
    return None


def ask(program, case, planner, folder, root):
    asked = {k: v for k, v in case.items() if k not in ('expected', 'baselines', 'graph_file')}
    if 'graph_file' in case:
        asked['graph'] = {k: v for k, v in costs.graph_of(case, root).items() if k in ('operators', 'edges')}
    path = os.path.join(folder, case['name'] + '.json')
    with open(path, 'w') as file:
        json.dump(asked, file)
    words = [w.format(case=path, planner=planner) for w in shlex.split(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-200:] or f'ends with {done.returncode}')
    return json.loads(done.stdout)


def check_itself(case, root):
    expected = case['expected']
    if case['kind'] == 'propagation':
        got = propagate.spread(case)
        return judge(case, {'shardings': got, 'collectives': propagate.collectives(case, got)}, 1, root)
    if case['kind'] == 'dapple_latency':
        got = costs.dapple_latency(case['forward'], case['backward'], case['exchange'], case['microbatches'])
        return judge(case, dict(zip(('pivot', 'warm_up', 'steady', 'end', 'cost'), got)), 1, root)
    if expected.get('plan') is None:
        return None
    return judge(case, {'cost': costs.EVALUATORS[case['kind']](case, expected['plan'], root), 'plan': expected['plan']}, 1, root)


def main(root=os.path.join(os.path.dirname(HERE), 'cases'), arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument('--program')
    parser.add_argument('--only', help='a file or a planner')
    parser.add_argument('--within', type=float)
    options = parser.parse_args(arguments)
    wrong = asked = 0
    for name in FILES:
        path = os.path.join(root, name + '.json')
        if not os.path.exists(path):
            continue
        with open(path) as file:
            cases = json.load(file)
        good = count = 0
        with tempfile.TemporaryDirectory() as folder:
            for case in cases:
                for planner in planners_of(case) if options.program else [None]:
                    if options.only and options.only not in (name, planner):
                        continue
                    count += 1
                    try:
                        fault = (judge(case, ask(options.program, case, planner, folder, root),
                                       options.within or WITHIN.get(planner, 1.), root)
                                 if options.program else check_itself(case, root))
                    except Exception as error:
                        fault = repr(error)
                    good += fault is None
                    if fault:
                        print('WRONG', case['name'], planner or '', fault)
        if count:
            print(f'{name}: {good} of {count}')
        wrong += count - good
        asked += count
    print('all good' if not wrong else f'{wrong} of {asked} wrong')
    return wrong > 0


if __name__ == '__main__':
    sys.exit(main())
