// SPDX-License-Identifier: BSD-3-Clause
// Losses of a combination: of each schedule the mean over seeds and a band of one deviation.
class StudyLosses {
  constructor(parent) {
    this.runs = runs.filter(run => run.curve && run.curve.loss.length > 0);
    if (this.runs.length === 0) return;
    this.section = element('section', undefined, parent, 'study-losses');
    element('h2', 'Losses', this.section);
    const form = element('p', undefined, this.section, 'bar settings'), draw = () => this.draw();
    this.picks = new Map(varied.map(option => [option, choice(option + ':', axisOf(this.runs.map(run => run.options[option])).values.map(text => [text, text]), form, draw)]));
    const hasSeconds = this.runs.some(run => run.curve.seconds);
    this.over = choice('over:', hasSeconds ? [['samples', 'samples'], ['seconds', 'seconds']] : [['samples', 'samples']], form, draw);
    this.many = choice('each point:', [1, 10, 100].map(many => [String(many), many === 1 ? 'a loss' : `mean of ${many}`]), form, draw);
    const longest = Math.max(...this.runs.map(run => run.curve.loss.length));
    this.many.value = longest > 1000 ? '100' : longest > 100 ? '10' : '1';
    const names = element('p', undefined, this.section, 'legend');
    for (const schedule of new Set(this.runs.map(run => run.schedule))) {
      const item = element('span', undefined, names);
      swatch(indexOf(schedule), item);
      item.append(schedule);
    }
    this.place = element('figure', undefined, this.section);
    this.note = element('p', '', this.section, 'faint');
    this.draw();
  }

  // A schedule's curve: at each number of samples that all of its seeds have come to, {samples, seconds (or null), mean, deviation, n}.
  // Points of a curve are means of `many` losses.
  static curveOf(same, many) {
    const length = Math.min(...same.map(run => run.curve.loss.length)), points = [];
    for (let i = 0; i < length; i += many) {
      const end = Math.min(i + many, length), values = same.map(run => run.curve.loss.slice(i, end)).filter(losses => losses.every(isNumber)).map(losses => sumOf(losses) / losses.length);
      if (values.length < same.length) continue;
      const mean = sumOf(values) / values.length, seconds = same.every(run => run.curve.seconds) ? sumOf(same.map(run => run.curve.seconds[end - 1])) / same.length : null;
      const deviation = values.length > 1 ? Math.sqrt(sumOf(values.map(x => (x - mean) ** 2)) / (values.length - 1)) : 0;
      points.push({samples: same[0].curve.samples[end - 1], seconds, mean, deviation, n: values.length});
    }
    return points;
  }

  // [{schedule, points}] of the chosen combination.
  curves() {
    const chosen = this.runs.filter(run => !figure.hidden.has(run.schedule) && [...this.picks].every(([option, pick]) => run.options[option] === pick.value));
    return [...groupedBy(chosen, run => run.schedule)].map(([schedule, same]) => ({schedule, points: StudyLosses.curveOf(same, Number(this.many.value))
      .filter(point => this.over.value === 'samples' || isNumber(point.seconds))})).filter(({points}) => points.length > 0);
  }

  draw() {
    if (!this.section) return;
    const curves = this.curves(), over = this.over.value, all = curves.flatMap(({points}) => points);
    this.place.replaceChildren();
    const where = [...this.picks].map(([option, pick]) => `${option} ${pick.value}`).join(', ');
    this.note.textContent = (all.length === 0 ? 'No run has losses' : 'Mean over seeds, and a band of one deviation on each side') + (where ? `, at ${where}.` : '.')
      + (over === 'seconds' ? ' Seconds are means over seeds at the same number of samples.' : '');
    if (all.length === 0) return;
    const low = Math.min(...all.map(p => p.mean - p.deviation)), high = Math.max(...all.map(p => p.mean + p.deviation)), plain = x => String(Number(x.toPrecision(4)));
    const axes = {x: {isNumeric: true, isLog: false, low: 0, high: Math.max(...all.map(p => p[over])), short: plain, name: over},
      y: {...plotRange(low, high), short: plain}, height: 340};
    this.plot = new Plot(this.place, axes, curves.map(({schedule, points}) => ({index: indexOf(schedule), name: schedule, hasMarks: points.length === 1,
      points: points.map(p => ({x: p[over], mean: p.mean, low: p.mean - p.deviation, high: p.mean + p.deviation, value: p.mean, text: `${schedule}: loss ${p.mean.toFixed(4)}`}))})),
      `loss over ${over}`);
  }
}
