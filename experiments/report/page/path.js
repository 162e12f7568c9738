// The critical path: from the last end back, of each action that before which it could not begin.
class CriticalPath {
  constructor(rows, reasons) {
    this.steps = [];
    this.on = new Set();
    let a = rows.flat().reduce((last, x) => !last || x.end > last.end ? x : last, undefined);
    this.end = a ? a.end : 0;
    for (; a; a = this.before(rows, reasons, a)) {
      this.steps.unshift(a);
      this.on.add(a);
    }
    this.work = this.steps.reduce((sum, x) => sum + x.end - x.start, 0);
  }

  // The action before it on its rank, or the other rank's that its input came from, if it waited for that.
  before(rows, reasons, a) {
    const earlier = rows[a.rank][a.index - 1];
    if (a.start > (earlier ? earlier.end : 0)) return reasons.lastInput(a, -1) || earlier;
    return earlier;
  }

  sentence() {
    const ranks = new Set(this.steps.map(a => a.rank)).size, between = this.end - this.work;
    return `Critical path: ${milliseconds(this.work)} of work in ${this.steps.length} actions on ${ranks === 1 ? 'one rank' : ranks + ' ranks'}`
      + (between > 0 ? `, and ${milliseconds(between)} between them.` : ', one after another.');
  }
}
