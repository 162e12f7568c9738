// SPDX-License-Identifier: BSD-3-Clause
// The critical path: from the last end back, of each action what came last of all that it waited for.
class CriticalPath {
  // Only where ranks wait for nothing but their pipelines, and times are not those of ranks that took turns.
  static of(run, rows, reasons) {
    const known = run.schedule.pipeline_alone && run.timing !== 'shared' && !run.cut && (run.timing !== 'virtual' || run.link);
    return known && rows.some(row => row.length > 0) ? new CriticalPath(run, rows, reasons) : null;
  }

  constructor(run, rows, reasons) {
    Object.assign(this, {run, rows, reasons, steps: []});
    this.delay = run.link ? run.link.latency + run.link.occupied : 0;
    const updates = rows.flat().filter(a => a.letter === 'U');
    this.parts = groupedBy(updates.filter(a => a.isPart), a => a.microbatch);
    this.updates = new Map(updates.map(a => [`${a.pipeline} ${a.stage} ${a.microbatch}`, a]));
    this.sums = new Map(); // the last backward of a stage in a batch, by direction
    for (const a of rows.flat()) if ('BW'.includes(a.letter)) this.sums.set(this.batchOf(a), a);
    let a = rows.flat().reduce((last, x) => !last || x.end > last.end ? x : last, undefined);
    this.end = a.end;
    for (; a; a = this.before(a)) this.steps.unshift(a);
    this.work = this.steps.reduce((sum, x) => sum + x.end - x.start, 0);
  }

  batchOf({pipeline, stage, microbatch}) { return `${pipeline} ${stage} ${Math.floor(microbatch / this.run.microbatches)}`; }

  before(a) {
    let last = this.rows[a.rank][a.index - 1], came = last ? last.end : -1;
    for (const [x, takes] of a.letter === 'U' ? this.waitedFor(a) : this.reasons.inputsOf(a).map(x => [x, this.delay])) {
      if (!x || x.rank === a.rank || x.end + takes > a.start || x.end + takes <= came) continue;
      last = x;
      came = x.end + takes;
    }
    return last;
  }

  // What an update waits for on other ranks, and how long that takes from there: the parts of a norm; where
  // directions share it, their gradients, and that they have come to it; then the version that the first has made.
  waitedFor(a) {
    const latency = this.run.link ? this.run.link.latency : 0;
    if (a.goesOn) return (this.parts.get(a.microbatch) || []).map(x => [x, 0]);
    if (a.pipeline > 0) return [[this.updates.get(`0 ${a.stage} ${a.microbatch}`), latency]];
    const found = [];
    for (let pipeline = 1; pipeline < this.run.schedule.directions; ++pipeline) {
      found.push([this.sums.get(this.batchOf({...a, pipeline})), latency]);
      found.push([this.beforeUpdate(pipeline, a), 0]);
    }
    return found;
  }

  // The last action of a rank before it came to an update.
  beforeUpdate(pipeline, {stage, microbatch}) {
    const update = this.updates.get(`${pipeline} ${stage} ${microbatch}`), row = update ? this.rows[update.rank] : [];
    let i = update ? update.index - 1 : -1;
    while (i >= 0 && row[i].letter === 'U') --i;
    return row[i];
  }

  sentence() {
    const ranks = new Set(this.steps.map(a => a.rank)).size, between = this.end - this.work;
    return `Critical path: ${milliseconds(this.work)} of work in ${this.steps.length} actions on ${ranks === 1 ? 'one rank' : ranks + ' ranks'}`
      + (between > 0 ? `, and ${milliseconds(between)} between them.` : ', one after another.');
  }
}
