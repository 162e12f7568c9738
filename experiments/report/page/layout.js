// SPDX-License-Identifier: BSD-3-Clause
// When each rank would run what: orders laid out in virtual time, as the simulator does it
// (schedules/prediction.cpp, messaging/interconnect.hpp).

// What happens, by its time; of one time in the order of coming.
class Agenda {
  constructor() { this.all = []; this.count = 0; }

  get next() { return this.all[0]; }

  add(when, happens) {
    const {all} = this;
    let i = all.push({when, number: this.count++, happens}) - 1;
    for (let up = (i - 1) >> 1; i > 0 && this.isBefore(i, up); i = up, up = (i - 1) >> 1) this.swap(i, up);
  }

  take() {
    const {all} = this, first = all[0], last = all.pop();
    if (all.length === 0) return first;
    all[0] = last;
    for (let i = 0; ;) {
      let least = 2 * i + 1;
      if (least >= all.length) return first;
      if (least + 1 < all.length && this.isBefore(least + 1, least)) ++least;
      if (!this.isBefore(least, i)) return first;
      this.swap(i, least);
      i = least;
    }
  }

  isBefore(i, j) {
    const a = this.all[i], b = this.all[j];
    return a.when < b.when || a.when === b.when && a.number < b.number;
  }
  swap(i, j) { [this.all[i], this.all[j]] = [this.all[j], this.all[i]]; }
}

// Full-duplex ports of ranks; a message cuts through them.
class Ports {
  constructor(agenda, ranks, {latency, occupied}) {
    Object.assign(this, {agenda, latency, isFree: occupied === 0});
    this.out = new Array(ranks).fill(0);
    this.in = new Array(ranks).fill(0);
    this.arrivals = [];
  }

  // takes: how long it occupies a port
  send(from, to, now, takes, arrived) {
    if (from === to) return arrived(now);
    const leaves = Math.max(now, this.out[from]);
    this.out[from] = leaves + takes;
    if (this.isFree) return this.agenda.add(leaves + this.latency, arrived);
    this.agenda.add(leaves + this.latency, () =>
      this.arrivals.push({from, to, takes, last: leaves + takes + this.latency, arrived}));
  }

  // Those whose first byte has come at an instant, the lowest sender first.
  serve(now) {
    for (const m of this.arrivals.splice(0).sort((a, b) => a.from - b.from)) {
      const begin = Math.max(now, this.in[m.to]);
      this.in[m.to] = begin + m.takes;
      this.agenda.add(Math.max(m.last, begin + m.takes), m.arrived);
    }
  }
}

// A rank that follows its program.
class ProgramOrder {
  constructor(row, layout) {
    Object.assign(this, {row, layout, position: 0, resumed: [], begun: new Map(), updating: new Set(), arrived: new Set()});
  }

  get front() { return this.row[this.position]; }

  next() {
    const {front} = this;
    if (this.resumed.length > 0 && !(front && front.letter === 'U' && this.isReady(front))) return this.resumed.shift();
    if (!front || !this.isReady(front)) return undefined;
    ++this.position;
    if (front.letter === 'U') {
      this.updating.add(this.layout.place(front));
      this.begun.set(this.layout.place(front), front);
    }
    if ('FBI'.includes(front.letter)) this.arrived.delete(this.layout.inputOf(front));
    return front;
  }

  isReady(a) {
    if (a.letter !== 'F' && !a.goesOn && this.updating.has(this.layout.place(a))) return false;
    if (a.goesOn) return this.layout.hasNorm(a);
    if ('UW'.includes(a.letter) || a.letter === 'R' && this.layout.how.ahead) return true;
    if (a.pair && !this.has(this.row[this.position + 1])) return false;
    return this.has(a);
  }

  has(a) {
    if (a.letter === 'F' && !this.layout.hasVersion(a)) return false;
    return a.letter === 'F' && a.stage === 0 || this.arrived.has(this.layout.inputOf(a));
  }

  arrive(a) { this.arrived.add(this.layout.inputOf(a)); }

  // An update that has waited for others goes before the program.
  resume(a) {
    this.resumed.push({...this.begun.get(this.layout.place(a)), again: true});
    this.resumed.sort((x, y) => x.microbatch - y.microbatch || x.stage - y.stage);
  }

  ended(a) { if (a.letter === 'U' && !a.isPart) this.updating.delete(this.layout.place(a)); }
}

// A rank by AMPNet's rule: an update as soon as enough is summed, else the earliest backward, else the
// earliest forward; at stage 0 so many microbatches are in flight at most.
class ArrivalOrder {
  constructor(stage, layout) {
    Object.assign(this, {stage, layout, arrived: {F: new Set(), B: new Set()}, left: layout.how.total, entered: 0, inFlight: 0, summed: 0, last: 0});
  }

  next() {
    const {keys, total, updateEvery} = this.layout.how, {stage} = this;
    if (this.summed > 0 && this.summed >= Math.min(updateEvery, this.left + this.summed))
      return {letter: 'U', pipeline: 0, stage, microbatch: this.last};
    for (const letter of ['B', 'F']) {
      if (letter === 'F' && stage === 0) return this.enter(keys, total);
      if (this.arrived[letter].size === 0) continue;
      const microbatch = Math.min(...this.arrived[letter]);
      this.arrived[letter].delete(microbatch);
      return {letter, pipeline: 0, stage, microbatch};
    }
    return undefined;
  }

  enter(keys, total) {
    if (this.inFlight >= keys || this.entered >= total) return undefined;
    ++this.inFlight;
    return {letter: 'F', pipeline: 0, stage: 0, microbatch: this.entered++};
  }

  arrive({letter, microbatch}) { this.arrived[letter].add(microbatch); }

  ended(a) {
    if (a.letter === 'B') {
      --this.inFlight;
      --this.left;
      ++this.summed;
      this.last = a.microbatch;
    } else if (a.letter === 'U') {
      this.summed = 0;
    }
  }
}

class Layout {
  // rows: for each rank its actions in their order; of a local rule none.
  // how: {stages, directions, microbatches (of a batch), total (of the run), flushes, eager, ahead, keys (of a
  // local rule, else 0), updateEvery, cost, pairCost and secondCost (nanoseconds of an action, of the first of a
  // pair, of its second), latency, occupied (nanoseconds that a message between stages has a port for itself;
  // those between directions have it for none)}
  constructor(rows, how) {
    this.how = how;
    this.agenda = new Agenda();
    this.ports = new Ports(this.agenda, rows.length, how);
    this.rankOf = new Map(); // by place
    this.norms = new Map();  // by update: parts that measure it, and have not ended
    rows.forEach((row, rank) => {
      if (how.keys > 0) this.rankOf.set(this.place({pipeline: 0, stage: rank}), rank);
      for (const a of row) {
        this.rankOf.set(this.place(a), rank);
        if (a.letter === 'U' && a.isPart) this.norms.set(a.microbatch, (this.norms.get(a.microbatch) || 0) + 1);
      }
    });
    this.orders = rows.map((row, rank) => how.keys > 0 ? new ArrivalOrder(rank, this) : new ProgramOrder(row, this));
    this.busy = rows.map(() => false);
    this.rows = rows.map(() => []);
    this.updates = new Map();   // made, by place
    this.backwards = new Map(); // ended, likewise
    this.meetings = new Map();  // of directions, by update
    this.touched = new Set(rows.keys()); // ranks that may go on
  }

  // A stage of a pipeline, and an input of its forward or backward, as numbers.
  place({pipeline, stage}) { return pipeline * this.how.stages + stage; }
  inputOf(a) { return 2 * (this.place(a) + a.microbatch * this.how.stages * this.how.directions) + (a.letter === 'F' ? 0 : 1); }

  // For each rank its actions with their starts and ends. Of orders that are cut, what can run.
  run() {
    this.grantTouched(0);
    while (this.agenda.next) {
      const now = this.agenda.next.when;
      do {
        while (this.agenda.next && this.agenda.next.when === now) this.agenda.take().happens(now);
        this.ports.serve(now);
      } while (this.agenda.next && this.agenda.next.when === now);
      this.grantTouched(now);
    }
    return this.rows;
  }

  grantTouched(now) {
    for (const rank of this.touched) { // more are added meanwhile
      this.touched.delete(rank);
      this.grant(rank, now);
    }
  }

  hasNorm(a) { return !(this.norms.get(a.microbatch) > 0); }

  // Whether the version is there that a forward reads: only where directions share updates can a rank come to
  // it before that is made.
  hasVersion(a) {
    const {directions, flushes, microbatches} = this.how;
    return directions === 1 || !flushes || (this.updates.get(this.place(a)) || 0) >= Math.floor(a.microbatch / microbatches);
  }

  grant(rank, now) {
    const order = this.orders[rank];
    while (!this.busy[rank]) {
      const a = order.next();
      if (!a) return;
      if (a.letter === 'U' && this.how.directions > 1 && !a.again && !a.goesOn) {
        this.meet(a, now);
        continue;
      }
      this.busy[rank] = true;
      const before = this.rows[rank][this.rows[rank].length - 1];
      const takes = before && before.pair ? this.how.secondCost(a) : a.pair ? this.how.pairCost(a, order.front) : this.how.cost(a);
      const ran = {...a, rank, start: now, end: now + takes};
      this.rows[rank].push(ran);
      this.agenda.add(ran.end, end => this.end(ran, end));
    }
  }

  // The input of another action goes to where that runs.
  tell(from, a, now) {
    const to = this.rankOf.get(this.place(a));
    if (to === undefined) return;
    this.ports.send(from, to, now, this.how.occupied, () => {
      this.orders[to].arrive(a);
      this.touched.add(to);
    });
  }

  end(a, now) {
    const {letter, pipeline, stage, microbatch, rank} = a;
    this.busy[rank] = false;
    this.touched.add(rank);
    this.orders[rank].ended(a);
    if (letter === 'F' && stage + 1 < this.how.stages) this.tell(rank, {letter: 'F', pipeline, stage: stage + 1, microbatch}, now);
    else if (letter === 'F') this.tell(rank, {letter: 'B', pipeline, stage, microbatch}, now);
    else if ('BI'.includes(letter) && stage > 0) this.tell(rank, {letter: 'B', pipeline, stage: stage - 1, microbatch}, now);
    else if (letter === 'U' && a.isPart) this.measureNorm(microbatch);
    else if (letter === 'U') this.makeVersion(a, now);
    if ('BW'.includes(letter)) this.sendGradients(a, now);
  }

  measureNorm(update) {
    this.norms.set(update, this.norms.get(update) - 1);
    for (const rank of this.rows.keys()) this.touched.add(rank);
  }

  // What a direction and the first send each other.
  sendAside(pipeline, stage, toFirst, now, arrived) {
    const own = this.rankOf.get(this.place({pipeline, stage})), first = this.rankOf.get(this.place({pipeline: 0, stage}));
    this.ports.send(toFirst ? own : first, toFirst ? first : own, now, 0, arrived);
  }

  meetingOf(stage, microbatch) {
    const key = stage + microbatch * this.how.stages;
    if (!this.meetings.has(key)) this.meetings.set(key, {granted: 0, gradients: 0});
    return this.meetings.get(key);
  }

  // An update that directions share has come up in the program of one.
  meet({pipeline, stage, microbatch}, now) {
    ++this.meetingOf(stage, microbatch).granted;
    if (this.how.eager) this.goOn(stage, microbatch);
    else this.addGradients(pipeline, stage, microbatch, now);
  }

  addGradients(pipeline, stage, microbatch, now) {
    this.sendAside(pipeline, stage, true, now, () => {
      ++this.meetingOf(stage, microbatch).gradients;
      this.goOn(stage, microbatch);
    });
  }

  sendGradients({pipeline, stage, microbatch}, now) {
    const {directions, microbatches, eager} = this.how, key = this.place({pipeline, stage});
    const ended = (this.backwards.get(key) || 0) + 1;
    this.backwards.set(key, ended);
    if (directions > 1 && eager && ended % (microbatches / directions) === 0)
      this.addGradients(pipeline, stage, (Math.floor(microbatch / microbatches) + 1) * microbatches - 1, now);
  }

  goOn(stage, microbatch) {
    const {granted, gradients} = this.meetingOf(stage, microbatch), {directions} = this.how;
    if (granted === directions && gradients === directions) this.resume(0, stage, microbatch);
  }

  resume(pipeline, stage, microbatch) {
    const rank = this.rankOf.get(this.place({pipeline, stage}));
    if (rank === undefined) return;
    this.orders[rank].resume({letter: 'U', pipeline, stage, microbatch});
    this.touched.add(rank);
  }

  // The first direction sends the new version to the others.
  makeVersion({pipeline, stage, microbatch}, now) {
    const key = this.place({pipeline, stage});
    this.updates.set(key, (this.updates.get(key) || 0) + 1);
    for (let other = 1; pipeline === 0 && other < this.how.directions; ++other)
      this.sendAside(other, stage, false, now, () => this.resume(other, stage, microbatch));
  }
}

// Of rows that have been laid out: the last end, and the mean share of it that ranks are idle.
function measuresOf(rows) {
  const makespan = rows.reduce((most, row) => Math.max(most, row.length ? row[row.length - 1].end : 0), 0);
  const idle = rows.map(row => makespan - row.reduce((sum, a) => sum + a.end - a.start, 0));
  return {makespan, idle: makespan > 0 ? idle.reduce((sum, x) => sum + x, 0) / rows.length / makespan : 0};
}
