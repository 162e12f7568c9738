// SPDX-License-Identifier: BSD-3-Clause
// What a layout needs to know of a schedule.
const rulesOf = run => ({...run.schedule, microbatches: run.microbatches, updateEvery: run.schedule.update_every});

// What was planned of a run whose actions were measured: its own order, each action as long as the median of its
// kind on that rank, messages in no time.
class Plan {
  // Only where there is an order, ranks wait for nothing but their pipelines, and times are of ranks that had a
  // device each.
  static of(run, rows, end) {
    if (!run.schedule.pipeline_alone || run.schedule.keys > 0 || !['measured', 'modelled'].includes(run.timing)) return null;
    if (rows.some(row => row.some(a => a.ofExpert || (a.isPart || a.goesOn) && a.letter !== 'U'))) return null;
    return new Plan(run, rows, end);
  }

  constructor(run, rows, end) {
    const leads = a => rows[a.rank][a.index + 1]?.first === a; // a pair; measured, each has its own length
    const kind = a => `${a.rank} ${a.letter} ${a.stage} ${a.isPart ? 'part' : ''} ${leads(a) ? 'first' : a.first ? 'second' : ''}`;
    const lengths = new Map();
    for (const [key, all] of groupedBy(rows.flat(), kind)) lengths.set(key, medianOf(all.map(a => a.end - a.start)));
    // Where directions share updates, an update is one action: it may wait for others twice.
    const joined = run.schedule.directions > 1;
    const orders = rows.map(row => row.filter(a => !(joined && a.isPart))
      .map(a => ({letter: a.letter, stage: a.stage, microbatch: a.microbatch, pipeline: a.pipeline, pair: leads(a),
        isPart: a.isPart && !joined, goesOn: a.goesOn && !joined, length: lengths.get(kind(a))})));
    const layout = new Layout(orders, {...rulesOf(run), keys: 0, cost: a => a.length, pairCost: a => a.length, secondCost: a => a.length, latency: 0, occupied: 0});
    this.rows = layout.run();
    this.planned = new Map();
    for (const row of this.rows) for (const a of row) if (!a.goesOn) this.planned.set(this.key(a), a);
    // It begins with the minibatch that is shown first, as that began.
    const [from] = middleOf(rows, run.microbatches, end);
    const first = rows.flat().filter(a => a.start >= from && this.planned.has(this.key(a))).sort((a, b) => a.start - b.start)[0];
    this.shift = first ? first.start - this.planned.get(this.key(first)).start : 0;
    for (const row of this.rows) for (const a of row) { a.start += this.shift; a.end += this.shift; }
  }

  key(a) { return `${a.letter} ${a.pipeline} ${a.stage} ${a.microbatch}`; }

  // By how much an action began later than planned; undefined if nothing is known of it.
  slipOf(a) {
    const planned = this.planned.get(this.key(a));
    return planned && !a.goesOn ? a.start - planned.start : undefined;
  }
}
