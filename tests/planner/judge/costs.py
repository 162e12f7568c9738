# SPDX-License-Identifier: BSD-3-Clause
"""Costs of plans, one function a cost model, written from the definitions in README.md: what `check.py` judges answers with.

Needs Python's own library only. Every function raises ValueError with a reason if the plan breaks a rule of its case.
"""
import itertools
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def refuse(condition, reason):
    if condition:
        raise ValueError(reason)


def graph_of(case, root=None):
    """The case's graph: its own, or the one in a file."""
    if 'graph' in case:
        return case['graph']
    for folder in (root, os.path.dirname(HERE)):
        if folder and os.path.exists(os.path.join(folder, case['graph_file'])):
            with open(os.path.join(folder, case['graph_file'])) as file:
                return json.load(file)
    raise ValueError('no ' + case['graph_file'])


def reachable(count, edges):
    """For each operator the mask of all it leads to. Operators are in a topological order."""
    after = [0] * count
    for u, v in sorted(edges, key=lambda e: -e[0]):
        after[u] |= after[v] | 1 << v
    return after


def check_chain_of_ideals(count, edges, parts):
    """Parts in their order: every operator once, no edge that leads back."""
    where = {}
    for place, part in enumerate(parts):
        refuse(not part, 'an empty stage')
        for operator in part:
            refuse(operator in where, f'operator {operator} twice')
            where[operator] = place
    refuse(len(where) != count, 'operators left out')
    for u, v in edges:
        refuse(where[u] > where[v], f'edge {u}-{v} leads back')
    return where


# ---- PipeDream ---------------------------------------------------------------------------------------------------------

def pipedream(case, stages, root=None):
    """stages: [{operators, replicas, inner?}] in their order. Seconds a minibatch in steady state."""
    graph = graph_of(case, root)
    everything = [operator for stage in stages for operator in stage['operators']]
    check_chain_of_ideals(len(graph['operators']), graph['edges'], [s['operators'] for s in stages])
    return pipedream_level(case, graph, len(case['levels']) - 1, everything, stages)


def pipedream_level(case, graph, level, operators, stages):
    count, bandwidth = case['levels'][level]
    refuse(sum(s['replicas'] for s in stages) != count, f'not all {count} workers of level {level} are used')
    refuse(sorted(o for s in stages for o in s['operators']) != sorted(operators), 'a level with other operators')
    inside = set(operators)
    where = {o: place for place, s in enumerate(stages) for o in s['operators']}
    edges = [e for e in graph['edges'] if e[0] in inside and e[1] in inside]
    refuse(level and case['model'] != 'paper', 'levels in another model')
    worst = 0.
    left = count
    for place, stage in enumerate(stages):
        replicas = stage['replicas']
        refuse(replicas < 1, 'no replica')
        chosen = [graph['operators'][o] for o in stage['operators']]
        weights = sum(o[4] for o in chosen)
        if level:
            work = pipedream_level(case, graph, level - 1, stage['operators'], stage['inner'])
        else:
            work = sum(o[1] + o[2] for o in chosen)
        worst = max(worst, pipedream_stage(case['model'], work, weights, replicas, bandwidth))
        if case.get('memory') is not None and not level:
            versions = -(-left // replicas)
            need = versions * (weights + sum(o[3] for o in chosen))
            refuse(need > case['memory'], f'stage {place} needs {need} bytes')
        left -= replicas
        if place + 1 < len(stages):
            leaving = {u for u, v in edges if where[u] <= place < where[v]}
            moved = sum(graph['operators'][u][3] for u in leaving)
            worst = max(worst, pipedream_link(case['model'], moved, bandwidth, replicas, stages[place + 1]['replicas'], place))
    return worst


def pipedream_stage(model, work, weights, replicas, bandwidth):
    if model == 'paper':
        return max(work, 2 * (replicas - 1) * weights / bandwidth) / replicas
    return (work + 4 * (replicas - 1) * weights / (bandwidth * replicas)) / replicas


def pipedream_link(model, moved, bandwidth, sender, receiver, place):
    if model == 'paper':
        return 2 * moved / bandwidth
    narrowest = receiver if place == 0 else min(sender, receiver)
    return 2 * moved / (bandwidth * narrowest)


# ---- Tarnawski ---------------------------------------------------------------------------------------------------------

def tarnawski(case, parts, root=None):
    """parts: [{device: 'accelerator'|'cpu', operators}]. The largest load."""
    graph = graph_of(case, root)
    operators, edges = graph['operators'], graph['edges']
    where = {}
    for place, part in enumerate(parts):
        for operator in part['operators']:
            refuse(operator in where, f'operator {operator} twice')
            where[operator] = place
    refuse(len(where) != len(operators), 'operators left out')
    refuse(sum(p['device'] == 'accelerator' for p in parts) > case['accelerators'], 'too many accelerators')
    refuse(sum(p['device'] == 'cpu' for p in parts) > case['cpus'], 'too many cpus')
    colours = {}
    for place, o in enumerate(operators):
        if o['colour'] is not None:
            refuse(colours.setdefault(o['colour'], where[place]) != where[place], 'colocated operators are apart')
    forward = [place for place, o in enumerate(operators) if not o['backward']]
    ahead = [e for e in edges if not operators[e[0]]['backward'] and not operators[e[1]]['backward']]
    if case['split'] == 'pipeline':
        for u, v in ahead:
            refuse(where[u] > where[v], f'edge {u}-{v} leads back')
    elif case['split'] == 'contiguous':
        after = reachable(len(operators), ahead)
        for part in range(len(parts)):
            inside = sum(1 << o for o in forward if where[o] == part)
            for u in forward:
                if where[u] == part:
                    for w in forward:
                        refuse(where[w] != part and after[u] >> w & 1 and after[w] & inside, f'part {part} is not contiguous')
    return max(tarnawski_load(graph, set(p['operators']), p['device'], case['memory']) for p in parts)


def tarnawski_load(graph, inside, device, memory):
    operators = graph['operators']
    if device == 'cpu':
        return sum(operators[o]['cpu'] for o in inside)
    refuse(sum(operators[o]['size'] for o in inside) > memory, 'an accelerator has too little memory')
    refuse(any(not operators[o]['accelerator_can'] for o in inside), 'an operator that no accelerator runs')
    moved = {u for u, v in graph['edges'] if (u in inside) != (v in inside)}
    return sum(operators[o]['accelerator'] for o in inside) + sum(operators[u]['transfer'] for u in moved)


# ---- Piper -------------------------------------------------------------------------------------------------------------

def piper(case, stages, root=None):
    """stages: [{operators, tensor, replicas, options: [name, one an operator]}]. Seconds a microbatch."""
    graph = graph_of(case, root)
    check_chain_of_ideals(len(graph['operators']), [e[:2] for e in graph['edges']], [s['operators'] for s in stages])
    refuse(sum(s['tensor'] * s['replicas'] for s in stages) > case['devices'], 'too many devices')
    worst, replicas_on = 0., 0
    for stage in reversed(stages):
        replicas_on += stage['replicas']
        refuse(case['microbatches'] % stage['replicas'], 'replicas do not divide the microbatches')
        time, need = piper_stage(case, graph, stage, replicas_on)
        refuse(need > case['memory'], f'a stage needs {need} bytes')
        worst = max(worst, time)
    return worst


def piper_stage(case, graph, stage, replicas_on):
    tensor, replicas = stage['tensor'], stage['replicas']
    inside = set(stage['operators'])
    work = moved = synced = need = 0.
    live = -(-replicas_on // replicas)
    for operator, name in zip(stage['operators'], stage['options']):
        option = piper_option(graph, operator, tensor, name)
        work += option['seconds']
        synced += 4 * (replicas - 1) / replicas * option['weights'] / case['microbatches']
        need += option['a'] * live + option['b']
        for place, (u, v, size) in enumerate(graph['edges']):
            if v == operator and u not in inside:
                moved += 2 * (size + option['edge'].get(str(place), 0))
            elif u == operator and v not in inside:
                moved += 2 * (size + option['edge'].get(str(place), 0))
    return work / replicas + (moved / replicas + synced) / case['bandwidth'], need


def piper_option(graph, operator, tensor, name):
    for option in graph['operators'][operator]['options']:
        if option['tensor'] == tensor and option['name'] == name:
            return option
    raise ValueError(f'operator {operator} has no option {name} of degree {tensor}')


# ---- Alpa: stages on submeshes -----------------------------------------------------------------------------------------

def alpa(case, stages, root=None):
    """stages: [{first, last, submesh, config}]. Seconds a batch: sum t + (microbatches - 1) max t."""
    costs = {tuple(row[:4]): row[4:] for row in case['costs']}
    times, at, devices = [], 0, 0
    for place, stage in enumerate(stages):
        refuse(stage['first'] != at, 'layers left out')
        at = stage['last'] + 1
        key = stage['first'], stage['last'], stage['submesh'], stage['config']
        refuse(key not in costs, f'no cost of {key}')
        time, later = costs[key]
        refuse(len(stages) - 1 - place > later, f'stage {place} has no memory for {len(stages) - 1 - place} later stages')
        times.append(time)
        rows, columns = case['submeshes'][stage['submesh']]
        devices += rows * columns
    refuse(at != case['layers'], 'layers left out')
    refuse(devices != case['mesh'][0] * case['mesh'][1], 'not the whole mesh is used')
    return sum(times) + (case['microbatches'] - 1) * max(times)


# ---- DAPPLE ------------------------------------------------------------------------------------------------------------

def dapple_latency(forward, backward, exchange, microbatches):
    """The planner's formula over stages, those of communication among them: (pivot, warm-up, steady, end, latency)."""
    last = len(forward) - 1
    steady = [(microbatches - 1) * (f + b) for f, b in zip(forward, backward)]
    pivot = last
    for s in range(last - 1, -1, -1):
        between = sum(forward[a] + backward[a] for a in range(s + 1, pivot))
        if steady[s] > steady[pivot] + between:
            pivot = s
    warm = sum(forward[:pivot + 1])
    ends = []
    for s in range(last + 1):
        if s <= pivot:
            ends.append(exchange[s] + sum(backward[s:pivot + 1]))
        else:
            ends.append(exchange[s] - sum(backward[pivot + 1:s]))
    end = max(ends)
    return pivot, warm, steady[pivot], end, warm + steady[pivot] + end


def dapple(case, stages, root=None):
    """stages: [{first, last, devices: [device]}]. Seconds a batch."""
    layers, machines = case['layers'], case['machines']
    machine_of = [place for place, size in enumerate(machines) for _ in range(size)]
    used, at = set(), 0
    forward, backward, exchange = [], [], []
    for place, stage in enumerate(stages):
        refuse(stage['first'] != at or stage['last'] < at, 'layers left out')
        at = stage['last'] + 1
        devices = stage['devices']
        refuse(not devices or len(set(devices)) != len(devices) or used & set(devices), 'a device twice')
        refuse(any(not 0 <= d < len(machine_of) for d in devices), 'no such device')
        used |= set(devices)
        replicas = len(devices)
        chosen = layers[stage['first']:stage['last'] + 1]
        homes = {machine_of[d] for d in devices}
        wire = case['inside'] if len(homes) == 1 else case['between']
        forward.append(sum(l[0] for l in chosen) / replicas)
        backward.append(sum(l[1] for l in chosen) / replicas)
        exchange.append(2 * (replicas - 1) / replicas * sum(l[3] for l in chosen) / wire)
        if place + 1 < len(stages):
            both = homes | {machine_of[d] for d in stages[place + 1]['devices']}
            time = layers[stage['last']][2] / (case['inside'] if len(both) == 1 else case['between'])
            forward.append(time)
            backward.append(time)
            exchange.append(0)
    refuse(at != len(layers), 'layers left out')
    refuse(len(used) != len(machine_of), 'not all devices are used')
    return dapple_latency(forward, backward, exchange, case['microbatches'])[4]


# ---- operators on devices, their times simulated: FlexFlow, ColocRL -------------------------------------------------------

def placement(case, devices, root=None):
    """devices: the device of each operator. Seconds a step."""
    operators, edges = case['operators'], case['edges']
    refuse(len(devices) != len(operators), 'operators left out')
    count = len(case['memory'])
    need = [0] * count
    for operator, device in zip(operators, devices):
        refuse(not 0 <= device < count, 'no such device')
        need[device] += operator['memory']
    for device in range(count):
        refuse(need[device] > case['memory'][device], f'device {device} needs {need[device]} bytes')
    return placement_time(case, devices)


def placement_time(case, devices):
    operators = case['operators']
    consumers = [[] for _ in operators]
    arrival = [0] * len(operators)
    for u, v in case['edges']:
        consumers[u].append(v)
    free = [0] * len(case['memory'])
    wire_free = {}
    end = 0
    for place, operator in enumerate(operators):
        device = devices[place]
        finish = max(free[device], arrival[place]) + operator['seconds'][device]
        free[device] = finish
        end = max(end, finish)
        for other in sorted({devices[c] for c in consumers[place]}):
            if other == device:
                at = finish
            else:
                start = max(finish, wire_free.get((device, other), 0))
                wire_free[device, other] = start + operator['bytes'] / case['bandwidth'][device][other]
                at = wire_free[device, other] + case['latency'][device][other]
            for c in consumers[place]:
                if devices[c] == other:
                    arrival[c] = max(arrival[c], at)
    return end


# ---- a strategy for each operator: Alpa's intra-op problem -------------------------------------------------------------

def intra(case, choice, root=None):
    """choice: the strategy of each operator. Node costs and edge costs together."""
    nodes, edges = case['nodes'], case['edges']
    refuse(len(choice) != len(nodes), 'operators left out')
    total = need = 0
    for node, c in zip(nodes, choice):
        refuse(not 0 <= c < len(node['cost']), 'no such strategy')
        total += node['cost'][c]
        need += node['memory'][c]
    refuse(case.get('memory') is not None and need > case['memory'], f'{need} bytes')
    for edge in edges:
        total += edge['cost'][choice[edge['from']]][choice[edge['to']]]
    return total


# ---- collectives: bytes that one device sends, of a tensor of `size` bytes in all ------------------------------------------

def all_reduce(size, n):
    return 2 * (n - 1) * size / n


def all_gather(size, n):
    return (n - 1) * size / n


def reduce_scatter(size, n):
    return (n - 1) * size / n


def all_to_all(size, n):
    return (n - 1) * size / (n * n)


EVALUATORS = {'pipedream': pipedream, 'tarnawski': tarnawski, 'piper': piper, 'alpa': alpa, 'dapple': dapple,
              'placement': placement, 'intra': intra}
