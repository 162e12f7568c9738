// SPDX-License-Identifier: BSD-3-Clause
// Why a rank was idle: whose output it waited for, and who began that wait.
class Reasons {
  // delay: what a message takes at least between ranks, in nanoseconds
  constructor(ranks, timing, delay, name) {
    this.ranks = ranks;
    this.timing = timing;
    this.delay = delay;
    this.name = name;
    this.sources = new Map(); // the last part of each pass
    for (const a of ranks.flat())
      if ('FBI'.includes(a.letter) && !a.ofExpert) this.sources.set(this.key(a.letter === 'F' ? 'F' : 'B', a, a.stage), a);
  }

  key(kind, a, stage) { return `${kind} ${a.pipeline} ${stage} ${a.microbatch}`; }

  // The pass that an action's input comes from, if it waits for one.
  inputOf(a) {
    if (a.letter === 'F') return this.sources.get(this.key('F', a, a.stage - 1));
    if ('BIR'.includes(a.letter))
      return this.sources.get(this.key('B', a, a.stage + 1)) || this.sources.get(this.key('F', a, a.stage));
    return undefined;
  }

  // Those of what begins with a, a pair included; some may be undefined.
  inputsOf(a) {
    const second = this.ranks[a.rank][a.index + 1];
    return [this.inputOf(a), second && second.first === a ? this.inputOf(second) : undefined];
  }

  // The one that came last from another rank; only if it came after a time.
  lastInput(a, after) {
    return this.inputsOf(a).filter(x => x && x.rank !== a.rank && x.end + this.delay > after && x.end <= a.start)
      .sort((x, y) => y.end - x.end)[0];
  }

  // When the rank became idle before an action; the action's own start if it was not.
  idleSince(a) { return a.index > 0 ? this.ranks[a.rank][a.index - 1].end : 0; }

  // A sentence for idle time of a rank before an action.
  sentence(rank, from, next) {
    const waited = `rank ${rank} waited ${milliseconds(next.start - from)}`;
    const name = this.name(next);
    if (this.timing === 'shared') return `${waited} before ${name}: ranks took turns on fewer threads`;
    if (next.goesOn) return `${waited} within ${name}${this.meeting(next)}`;
    if (next.letter === 'U') return `${waited} before its update ${name}`;
    const links = this.chain(next, from);
    if (links.length === 0) return `${waited} before ${name}${this.withoutInput(next)}`;
    const [first] = links, last = links[links.length - 1];
    let text = `${waited} for ${this.of(first.input)}`;
    if (first.late > 0) text += `, which ended ${milliseconds(first.late)} before`;
    if (links.length > 4) {
      text += `; ${links.length - 2} other ranks had waited in turn`;
      text += this.had(last);
    } else {
      for (const link of links.slice(1)) text += this.had(link);
    }
    return text + this.begun(last);
  }

  // From idle time before an action back to who began it: whose input ended in it, what that rank had
  // waited for while the first one waited, and so on.
  chain(next, from) {
    const links = [];
    for (let a = next, since = from; ;) {
      const input = this.lastInput(a, since);
      if (!input) return links;
      links.push({rank: a.rank, input, idle: a.start - since, since, late: a.start - input.end});
      a = this.blockOf(input, since);
      if (a.start <= since) return links; // it was busy all the time
      since = this.idleSince(a);
    }
  }

  // The first of the actions that a rank ran without a pause up to one, or up to a time.
  blockOf(a, since) {
    const row = this.ranks[a.rank];
    let i = a.index;
    while (i > 0 && row[i].start > since && row[i - 1].end === row[i].start) --i;
    return row[i];
  }

  of(a) { return `${this.name(a)} of rank ${a.rank}`; }
  had(link) { return `; rank ${link.rank} had waited ${milliseconds(link.idle)} for ${this.of(link.input)}`; }

  // What the rank at the end of a chain did meanwhile.
  begun({input, since}) {
    const a = this.blockOf(input, since);
    if (a.start <= since) return a === input ? '' : `; rank ${a.rank} was busy until then`;
    return a.start > this.idleSince(a) ? `; rank ${a.rank} had waited ${milliseconds(a.start - this.idleSince(a))} before ${this.name(a)}` : '';
  }

  withoutInput(a) {
    if (a.letter === 'W') return ', which waits for no other rank';
    const input = this.inputOf(a);
    if (!input) return ', which reads data';
    return input.rank === a.rank || this.timing === 'modelled' ? ': its input was there'
      : ': its input was made before, and may have been on its way';
  }

  meeting(a) {
    const row = this.ranks[a.rank];
    for (let i = a.index - 1; i >= 0; --i) {
      const b = row[i];
      if (b.isPart && b.letter === a.letter && b.stage === a.stage && b.microbatch === a.microbatch && b.pipeline === a.pipeline) {
        const who = meetings.filter(([flag]) => (b.meets & flag) > 0).map(([, text]) => text);
        return who.length > 0 ? ', for ' + who.join(' and ') : '';
      }
    }
    return '';
  }
}
