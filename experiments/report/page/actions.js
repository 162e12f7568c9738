// SPDX-License-Identifier: BSD-3-Clause
// What page.cpp wrote, as objects, and how a page calls it.

const colours = {F: '#56b4e9', B: '#e69f00', I: '#f0e442', W: '#009e73', U: '#cc79a7', R: '#999999'};
const meanings = {F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', U: 'update',
  R: 'forward that runs again'};
const timings = {
  measured: 'Times are measured: a thread for each rank.',
  modelled: 'Times are modelled: the processor times of actions were measured, and laid out as if each rank had a device.',
  shared: 'Times are measured where ranks took turns on fewer threads; idle time is not the schedule’s.',
  virtual: 'Times are the virtual clock’s.'};
const numbersOfAction = 9;
// What a rank may wait for behind a part of an action: part_end in messaging/record.hpp.
const meetings = [[1, 'its tensor shards'], [2, 'other data replicas, for a layer'], [4, 'the norm of the update'],
  [8, 'the new version'], [16, 'experts'], [32, 'the other end of the tied matrix']];

// The actions of each rank, in their order, from its numbers.
function rowsFrom(ranks, letters) { return ranks.map((numbers, rank) => actionsFrom(numbers, rank, letters)); }

function actionsFrom(numbers, rank, letters) {
  const all = [];
  for (let i = 0, before = 0; i < numbers.length; i += numbersOfAction) {
    const [letter, stage, microbatch, pipeline, version, idle, takes, marks, alive] = numbers.slice(i, i + numbersOfAction);
    const start = before + idle;
    before = start + takes;
    const a = {letter: letters[letter], rank, index: all.length, stage, microbatch, pipeline, version, alive, start, end: before,
      isPart: (marks & 1) > 0, goesOn: (marks & 2) > 0, ofExpert: (marks & 16) > 0, meets: marks >> 8};
    const last = all[all.length - 1];
    if ((marks & 8) > 0 && last) { // the second of a pair
      a.first = last;
      if (takes === 0) last.second = a; // which the first is charged for
    }
    all.push(a);
  }
  return all;
}

// Whether a rank has several stages of a pipeline.
function hasSeveralStages(rows) {
  return rows.some(row => {
    const stages = new Map();
    return row.some(a => {
      const other = stages.get(a.pipeline) ?? a.stage;
      stages.set(a.pipeline, a.stage);
      return other !== a.stage;
    });
  });
}

// "F3", "2F3" of stage 2 where a rank has several of a pipeline, "F3 B1" of a pair that ran as one.
function nameOf(a, withStage) {
  return (withStage ? a.stage : '') + a.letter + a.microbatch + (a.second ? ' ' + nameOf(a.second, withStage) : '');
}

// A legend of the kinds that are among rows, in the order of their letters.
function legendOfKinds(rows, letters, parent) {
  const there = new Set(rows.flat().map(a => a.letter));
  legend([...letters].filter(letter => there.has(letter)).map(letter => [colours[letter], `${letter} ${meanings[letter]}`]), parent);
}

function milliseconds(ns, digits = ns < 1e4 ? 6 : ns < 1e7 ? 3 : 1) {
  return (ns === 0 ? '0' : (ns / 1e6).toFixed(digits)) + ' ms';
}

// A minibatch in the middle of rows: [from, to], all of them if there are no others.
function middleOf(rows, microbatches, end) {
  const batch = a => Math.floor(a.microbatch / microbatches);
  let last = 0;
  for (const row of rows) for (const a of row) if (a.end <= end) last = Math.max(last, batch(a));
  const first = rows[0].length ? batch(rows[0][0]) : 0, middle = Math.floor((first + last + 1) / 2);
  let from = Infinity, to = 0;
  for (const row of rows)
    for (const a of row)
      if (batch(a) === middle) { from = Math.min(from, a.start); to = Math.max(to, a.end); }
  return to > from ? [from, to] : [0, end];
}

function medianOf(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : Math.round((sorted[half - 1] + sorted[half]) / 2);
}
